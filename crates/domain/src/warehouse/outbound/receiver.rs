//! The origin and destination of a shipment.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::shipment_type::ShipmentType;
use crate::json::{Field, Object, object, read_fields, text, variant};
use crate::warehouse::address::ReceiverAddress;
use crate::warehouse::identifier::{Identifier, identifier};
use crate::warehouse::limits::IDENTIFIER;
use crate::warehouse::record::{Warehouse, Warehouses, known_warehouse};

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LocationType {
    Warehouse,
    Store,
}

impl Sender {
    /// Reads the origin. A report can name a warehouse instead of its identifier; what it gives wins.
    pub(super) fn read(from: &Object<'_>, warehouses: &Warehouses) -> Option<Self> {
        let Some((own, warehouse)) = from.optional("warehouse", known_warehouse(warehouses))?
        else {
            return read_fields!(Self {
                identifier: from.required("identifier", text(IDENTIFIER)),
                kind: from.required("type", variant),
            });
        };
        let given = from.optional("identifier", text(IDENTIFIER));
        let kind = from.optional("type", variant);
        let configured = warehouse.external_identifier.unwrap_or(own);
        Some(Self {
            identifier: given?.unwrap_or(configured),
            kind: kind?.unwrap_or(LocationType::Warehouse),
        })
    }
}

impl Receiver {
    /// Reads the destination. A report can name a warehouse instead of its identifier and address; what it
    /// gives wins.
    pub(super) fn read(
        to: &Object<'_>,
        shipment: Option<ShipmentType>,
        warehouses: &Warehouses,
    ) -> Option<Self> {
        let warehouse = to.optional("warehouse", known_warehouse(warehouses))?;
        let is_given = to.has("identifier");
        let identifier = match (shipment, &warehouse) {
            (Some(ShipmentType::Vendor), _) => to.required("identifier", vendor_number),
            (_, Some((own, warehouse))) if !is_given => {
                configured_identifier(to, shipment, own, warehouse).map(Identifier::Text)
            }
            _ => to.required("identifier", text(IDENTIFIER)).map(Identifier::Text),
        };
        let (kind, address) = match warehouse {
            None => (
                to.required("type", variant),
                to.required("address", object(ReceiverAddress::read)),
            ),
            Some((_, warehouse)) => {
                let kind = to.optional("type", variant);
                let given = to.optional("address", object(ReceiverAddress::read));
                let address = given.map(|given| given.or(warehouse.address));
                if address == Some(None) {
                    to.missing("address");
                }
                (kind.map(|kind| kind.unwrap_or(LocationType::Warehouse)), address.flatten())
            }
        };
        Some(Self { identifier: identifier?, kind: kind?, address: address? })
    }
}

/// The identifier of a warehouse as the destination of a shipment of this type.
fn configured_identifier(
    to: &Object<'_>,
    shipment: Option<ShipmentType>,
    own: &str,
    warehouse: &Warehouse,
) -> Option<String> {
    let (configured, name) = match shipment? {
        ShipmentType::StockTransfer => {
            (&warehouse.settings.stock_transfer_identifier, "stock transfer identifier")
        }
        _ => (&warehouse.external_identifier, "external identifier"),
    };
    if configured.is_none() {
        to.invalid("warehouse", format!("warehouse {own} has no {name}"));
    }
    configured.clone()
}

fn vendor_number(field: Field<'_>) -> Option<Identifier> {
    let vendor = identifier(field)?;
    let is_number = match &vendor {
        Identifier::Number(number) => *number >= 0,
        Identifier::Text(text) => text.bytes().all(|byte| byte.is_ascii_digit()),
    };
    if is_number { Some(vendor) } else { field.invalid("must be the number of a vendor") }
}
