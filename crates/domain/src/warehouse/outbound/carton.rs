//! Cartons and the units in them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::json::{Object, array, integer, object, read_fields, text, variant};
use crate::warehouse::condition::Condition;
use crate::warehouse::limits::{IDENTIFIER, MAX_FLAGS, OPTIONAL_TEXT};
use crate::warehouse::reference::Reference;

/// The maximum number of units of a shipment.
pub(super) const MAX_UNITS: usize = 20_000;

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundCarton {
    /// The identifier on the label.
    #[schema(max_length = 255)]
    pub identifier: Option<String>,
    pub reference: Option<Reference>,
    /// The last sorting template of the carton.
    #[schema(max_length = 255)]
    pub sorting_template_name: Option<String>,
    #[schema(min_items = 1, max_items = 20_000)]
    pub details: Vec<OutboundDetail>,
}

/// One unit.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundDetail {
    /// Unique in the shipment.
    #[schema(min_length = 1, max_length = 255)]
    pub line_identifier: String,
    /// The program into which the unit was received.
    #[schema(min_length = 1, max_length = 255)]
    pub program_identifier: String,
    /// The warehouse's license plate.
    #[schema(min_length = 1, max_length = 255)]
    pub unit_identifier: String,
    #[schema(max_length = 255)]
    pub client_unit_identifier: Option<String>,
    /// The ASN against which the unit was received.
    #[schema(max_length = 255)]
    pub inbound_received_asn: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    pub sku: String,
    #[schema(max_length = 255)]
    pub upc: Option<String>,
    #[schema(minimum = 1, maximum = 1)]
    pub quantity: i64,
    #[schema(max_length = 255)]
    pub vendor_identifier: Option<String>,
    #[schema(max_length = 255)]
    pub serial_number: Option<String>,
    pub condition: Condition,
    #[schema(max_items = 100)]
    pub eligibility_flags: Option<Vec<String>>,
    #[schema(max_length = 255)]
    pub merchant: Option<String>,
}

impl OutboundCarton {
    /// Reads a carton. `lines` holds the line identifiers of earlier units.
    pub(super) fn read(carton: &Object<'_>, lines: &mut HashSet<String>) -> Option<Self> {
        let detail = object(|detail| OutboundDetail::read(detail, lines));
        read_fields!(Self {
            identifier: carton.optional("identifier", text(OPTIONAL_TEXT)),
            reference: carton.optional("reference", object(Reference::read)),
            sorting_template_name: carton.optional("sorting_template_name", text(OPTIONAL_TEXT)),
            details: carton.required("details", array(1..=MAX_UNITS, detail)),
        })
    }
}

impl OutboundDetail {
    fn read(detail: &Object<'_>, lines: &mut HashSet<String>) -> Option<Self> {
        let identifier = |key| detail.required(key, text(IDENTIFIER));
        let optional_text = |key| detail.optional(key, text(OPTIONAL_TEXT));
        let line_identifier = identifier("line_identifier");
        let is_duplicate = line_identifier.as_ref().is_some_and(|line| !lines.insert(line.clone()));
        let flags = array(0..=MAX_FLAGS, text(OPTIONAL_TEXT));
        let unit = read_fields!(Self {
            line_identifier: line_identifier,
            program_identifier: identifier("program_identifier"),
            unit_identifier: identifier("unit_identifier"),
            client_unit_identifier: optional_text("client_unit_identifier"),
            inbound_received_asn: optional_text("inbound_received_asn"),
            sku: identifier("sku"),
            upc: optional_text("upc"),
            quantity: detail.required("quantity", integer(1..=1)),
            vendor_identifier: optional_text("vendor_identifier"),
            serial_number: optional_text("serial_number"),
            condition: detail.required("condition", variant),
            eligibility_flags: detail.optional("eligibility_flags", flags),
            merchant: optional_text("merchant"),
        });
        if is_duplicate {
            detail.invalid("line_identifier", "another line has this identifier");
        }
        unit
    }
}
