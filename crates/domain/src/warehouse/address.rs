//! The address of a warehouse or another destination.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::limits::{IDENTIFIER, OPTIONAL_TEXT};
use crate::json::{Object, read_fields, text};

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiverAddress {
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
    #[schema(max_length = 255)]
    pub company: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    pub street: String,
    #[schema(max_length = 255)]
    pub street2: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    pub city: String,
    #[schema(min_length = 1, max_length = 255)]
    pub state: String,
    #[schema(min_length = 1, max_length = 32)]
    pub zip: String,
}

impl ReceiverAddress {
    /// The lines of a label.
    pub fn lines(&self) -> Vec<String> {
        let Self { name, company, street, street2, city, state, zip } = self;
        let place = format!("{city}, {state} {zip}");
        let lines = [Some(name), company.as_ref(), Some(street), street2.as_ref(), Some(&place)];
        // Some senders write an empty string for an absent text.
        lines.into_iter().flatten().filter(|line| !line.is_empty()).cloned().collect()
    }

    pub(super) fn read(address: &Object<'_>) -> Option<Self> {
        read_fields!(Self {
            name: address.required("name", text(IDENTIFIER)),
            company: address.optional("company", text(OPTIONAL_TEXT)),
            street: address.required("street", text(IDENTIFIER)),
            street2: address.optional("street2", text(OPTIONAL_TEXT)),
            city: address.required("city", text(IDENTIFIER)),
            state: address.required("state", text(IDENTIFIER)),
            zip: address.required("zip", text(1..=32)),
        })
    }
}
