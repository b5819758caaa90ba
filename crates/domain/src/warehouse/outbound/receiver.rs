//! The origin and destination of a shipment.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::shipment_type::ShipmentType;
use crate::json::{Field, Object, object, read_fields, text, variant};
use crate::warehouse::identifier::{Identifier, identifier};
use crate::warehouse::limits::{IDENTIFIER, OPTIONAL_TEXT};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sender {
    #[schema(min_length = 1, max_length = 255)]
    pub identifier: String,
    #[serde(rename = "type")]
    pub kind: LocationType,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receiver {
    /// The identifier of the location. For a vendor a number, which can be written as a string.
    pub identifier: Identifier,
    #[serde(rename = "type")]
    pub kind: LocationType,
    pub address: ReceiverAddress,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiverAddress {
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub company: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    pub street: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub street2: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    pub city: String,
    #[schema(min_length = 1, max_length = 255)]
    pub state: String,
    #[schema(min_length = 1, max_length = 32)]
    pub zip: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LocationType {
    Warehouse,
    Store,
}

impl Sender {
    pub(super) fn read(from: &Object<'_>) -> Option<Self> {
        read_fields!(Self {
            identifier: from.required("identifier", text(IDENTIFIER)),
            kind: from.required("type", variant),
        })
    }
}

impl Receiver {
    pub(super) fn read(to: &Object<'_>, shipment: Option<ShipmentType>) -> Option<Self> {
        read_fields!(Self {
            identifier: match shipment {
                Some(ShipmentType::Vendor) => to.required("identifier", vendor_number),
                _ => to.required("identifier", text(IDENTIFIER)).map(Identifier::Text),
            },
            kind: to.required("type", variant),
            address: to.required("address", object(ReceiverAddress::read)),
        })
    }
}

impl ReceiverAddress {
    fn read(address: &Object<'_>) -> Option<Self> {
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

fn vendor_number(field: Field<'_>) -> Option<Identifier> {
    let vendor = identifier(field)?;
    let is_number = match &vendor {
        Identifier::Number(number) => *number >= 0,
        Identifier::Text(text) => text.bytes().all(|byte| byte.is_ascii_digit()),
    };
    if is_number { Some(vendor) } else { field.invalid("must be the number of a vendor") }
}
