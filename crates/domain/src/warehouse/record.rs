//! The warehouses of a merchant, whose identifiers and addresses fill reports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::address::ReceiverAddress;
use super::limits::IDENTIFIER;
use crate::json::{Field, FieldError, Object, object, parsed, read_fields, text};
use crate::order::country_code;

/// The maximum number of warehouses of a merchant. Every service has them in memory.
pub const MAX_WAREHOUSES: usize = 200;
const MAX_IDENTIFIER_CHARS: usize = 63;

/// The warehouses of a merchant by our identifier.
pub type Warehouses = BTreeMap<String, Warehouse>;

/// A warehouse of a merchant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Warehouse {
    /// The identifier in the merchant's systems. Messages have it instead of ours.
    #[schema(min_length = 1, max_length = 255)]
    pub external_identifier: Option<String>,
    pub address: Option<ReceiverAddress>,
    #[serde(default)]
    pub settings: WarehouseSettings,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WarehouseSettings {
    /// The identifier of this warehouse as the destination of stock transfers.
    #[schema(min_length = 1, max_length = 255)]
    pub stock_transfer_identifier: Option<String>,
    /// The country of the address: an ISO 3166-1 code of two or three letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z]{2,3}$")]
    pub country_code: Option<String>,
    /// Whether the labels of returned parcels have the address of this warehouse. Needs the address with its country. Only
    /// one warehouse of a merchant receives returns: setting it takes it from the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub receives_returns: bool,
}

impl Warehouse {
    pub fn read(warehouse: &Object<'_>) -> Option<Self> {
        let settings = warehouse.optional("settings", object(WarehouseSettings::read));
        let read = read_fields!(warehouse => Self {
            external_identifier: warehouse.optional("external_identifier", text(IDENTIFIER)),
            address: warehouse.optional("address", object(ReceiverAddress::read)),
            settings: settings.map(Option::unwrap_or_default),
        })?;
        let is_located = read.address.is_some() && read.settings.country_code.is_some();
        if read.settings.receives_returns && !is_located {
            warehouse.invalid("settings", "receives_returns needs an address and a country_code");
        }
        Some(read)
    }

    /// Checks our identifier of a warehouse, which is part of a URL.
    pub fn check_identifier(identifier: &str) -> Result<(), FieldError> {
        let is_valid = (1..=MAX_IDENTIFIER_CHARS).contains(&identifier.len())
            && identifier.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        let detail = "must be 1 to 63 letters, digits, hyphens or underscores";
        if is_valid { Ok(()) } else { Err(FieldError::invalid("$.identifier", detail)) }
    }
}

impl WarehouseSettings {
    fn read(settings: &Object<'_>) -> Option<Self> {
        read_fields!(settings => Self {
            stock_transfer_identifier: settings
                .optional("stock_transfer_identifier", text(IDENTIFIER)),
            country_code: settings.optional("country_code", parsed(2..=3, country_code)),
            receives_returns: settings.flag("receives_returns"),
        })
    }
}

/// The identifier of a stored warehouse.
pub(super) fn known_warehouse(
    warehouses: &Warehouses,
) -> impl FnMut(Field<'_>) -> Option<(String, Warehouse)> {
    move |field| {
        parsed(IDENTIFIER, |identifier| {
            let found = warehouses.get(identifier).cloned();
            let found = found.map(|warehouse| (identifier.to_owned(), warehouse));
            found.ok_or_else(|| format!("there is no warehouse {identifier}"))
        })(field)
    }
}
