//! The fields of a unit that an inbound ASN can give in its header, on a line, or both.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::identifier::{Identifier, asin, code};
use super::limits::{MAX_FLAGS, OPTIONAL_TEXT};
use crate::json::{Object, array, read_fields, text};

/// Fields that a receipt takes from the line, or else from the header.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnitFields {
    /// Typically the owner of the inventory.
    #[schema(max_length = 255)]
    pub merchant: Option<String>,
    /// Typically a brand of the merchant.
    #[schema(max_length = 255)]
    pub concept: Option<String>,
    /// Ten letters and digits, or a number.
    pub asin: Option<Identifier>,
    /// Every line has a SKU or a UPC of its own.
    pub upc: Option<Identifier>,
    /// Used only for a line or an ASN of one unit.
    pub serial_number: Option<Identifier>,
    pub tracking_number: Option<Identifier>,
    /// Flags that an outbound ASN of the unit repeats.
    #[schema(max_items = 100)]
    pub eligibility_flags: Option<Vec<String>>,
}

impl UnitFields {
    pub(super) fn read(object: &Object<'_>) -> Option<Self> {
        let flags = array(0..=MAX_FLAGS, text(OPTIONAL_TEXT));
        read_fields!(Self {
            merchant: object.optional("merchant", text(OPTIONAL_TEXT)),
            concept: object.optional("concept", text(OPTIONAL_TEXT)),
            asin: object.optional("asin", asin),
            upc: object.optional("upc", code),
            serial_number: object.optional("serial_number", code),
            tracking_number: object.optional("tracking_number", code),
            eligibility_flags: object.optional("eligibility_flags", flags),
        })
    }
}
