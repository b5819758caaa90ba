//! Commands for warehouses: their records, inbound ASNs, receipts and outbound shipments.

pub(crate) mod asns;
pub(crate) mod receipts;
pub(crate) mod shipments;
pub(crate) mod warehouses;

use serde_json::Value;

use crate::output::text_at;

/// The SKU of a line or receipt, or else its UPC.
fn product(item: &Value) -> String {
    let is_known = |name: &&str| item.get(*name).is_some_and(|it| !it.is_null());
    let name = ["sku", "upc"].into_iter().find(is_known);
    name.map_or_else(|| "-".to_owned(), |name| text_at(item, &format!("/{name}")))
}
