//! The warehouse to which the units of a return go.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::merchant::Rule;
use crate::warehouse::Warehouses;

/// The warehouse to which the units of a return go. It stays as it was when the return was started, because the shopper
/// may have written the address on a parcel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnDestination {
    /// Our identifier of the warehouse of the merchant.
    #[schema(example = "reno")]
    pub warehouse: String,
    /// The rule of the merchant that names it.
    #[schema(example = "outlet")]
    pub rule: String,
    /// The address, line by line.
    // Not as an object: an erasure takes its fields for those of the shopper.
    #[schema(example = json!(["Dock 7", "7 Dock Street", "Reno, NV 89501"]))]
    pub address_lines: Vec<String>,
}

impl ReturnDestination {
    /// A warehouse that a rule names. `None` if there is no such warehouse, or if it has no address.
    pub fn new((warehouse, rule): (&str, &Rule), warehouses: &Warehouses) -> Option<Self> {
        let address = warehouses.get(warehouse)?.address.as_ref()?;
        Some(Self {
            warehouse: warehouse.to_owned(),
            rule: rule.id.clone(),
            address_lines: address.lines(),
        })
    }
}
