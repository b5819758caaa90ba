//! Where a drop shipment was to go, and who pays for it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::WORD;
use super::super::identifier::{Identifier, identifier};
use crate::json::{Object, text, timestamp};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderAddress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Identifier>,
    #[serde(flatten)]
    pub lines: AddressLines,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddressLines {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub company: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub telephone_number: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub street: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub street2: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub city: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub zip_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub country: Option<String>,
}

impl OrderAddress {
    pub(super) fn read(address: &Object<'_>) -> Option<Self> {
        let id = address.optional("id", identifier);
        let lines = AddressLines::read(address);
        let created_at = address.optional("created_at", timestamp);
        let updated_at = address.optional("updated_at", timestamp);
        Some(Self { id: id?, lines: lines?, created_at: created_at?, updated_at: updated_at? })
    }
}

impl AddressLines {
    fn read(address: &Object<'_>) -> Option<Self> {
        let word = |key| address.optional(key, text(WORD));
        let (name, company, phone) = (word("name"), word("company"), word("telephone_number"));
        let (street, street2, city) = (word("street"), word("street2"), word("city"));
        let (state, zip_code, country) = (word("state"), word("zip_code"), word("country"));
        Some(Self {
            name: name?,
            company: company?,
            telephone_number: phone?,
            street: street?,
            street2: street2?,
            city: city?,
            state: state?,
            zip_code: zip_code?,
            country: country?,
        })
    }
}
