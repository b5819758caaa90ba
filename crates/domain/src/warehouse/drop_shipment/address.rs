//! The billing and shipping address of a drop shipment.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::{Object, read_fields, text, timestamp};
use crate::warehouse::identifier::{Identifier, identifier};
use crate::warehouse::limits::OPTIONAL_TEXT;

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
        read_fields!(Self {
            id: address.optional("id", identifier),
            lines: AddressLines::read(address),
            created_at: address.optional("created_at", timestamp),
            updated_at: address.optional("updated_at", timestamp),
        })
    }
}

impl AddressLines {
    fn read(address: &Object<'_>) -> Option<Self> {
        let optional_text = |key| address.optional(key, text(OPTIONAL_TEXT));
        read_fields!(Self {
            name: optional_text("name"),
            company: optional_text("company"),
            telephone_number: optional_text("telephone_number"),
            street: optional_text("street"),
            street2: optional_text("street2"),
            city: optional_text("city"),
            state: optional_text("state"),
            zip_code: optional_text("zip_code"),
            country: optional_text("country"),
        })
    }
}
