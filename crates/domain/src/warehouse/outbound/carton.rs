//! Boxes and pallets, and the units in them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::reference::{Condition, Reference};
use super::super::{IDENTIFIER, WORD};
use super::MAX_UNITS;
use crate::json::{Object, array, integer, object, one_of, text};

/// With all of them at their longest, a unit still fits into a message.
const MAX_FLAGS: usize = 100;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundCarton {
    /// What can be scanned on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub identifier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// The last directed sorting template assigned to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub sorting_template_name: Option<String>,
    #[schema(min_items = 1)]
    pub details: Vec<OutboundDetail>,
}

/// One unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundDetail {
    /// Unique in the shipment.
    #[schema(min_length = 1, max_length = 255)]
    pub line_identifier: String,
    /// The program the unit was received into.
    #[schema(min_length = 1, max_length = 255)]
    pub program_identifier: String,
    /// The warehouse's license plate.
    #[schema(min_length = 1, max_length = 255)]
    pub unit_identifier: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub client_unit_identifier: Option<String>,
    /// The ASN against which the unit was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub inbound_received_asn: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    pub sku: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub upc: Option<String>,
    #[schema(minimum = 1, maximum = 1)]
    pub quantity: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub vendor_identifier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub serial_number: Option<String>,
    pub condition: Condition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 100)]
    pub eligibility_flags: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub merchant: Option<String>,
}

impl OutboundCarton {
    /// Reads a carton; `lines` are the identifiers of all lines so far.
    pub(super) fn read(carton: &Object<'_>, lines: &mut HashSet<String>) -> Option<Self> {
        let identifier = carton.optional("identifier", text(WORD));
        let reference = carton.optional("reference", object(Reference::read));
        let sorting_template_name = carton.optional("sorting_template_name", text(WORD));
        let details = object(|detail| OutboundDetail::read(detail, lines));
        let details = carton.required("details", array(1..=MAX_UNITS, details));
        Some(Self {
            identifier: identifier?,
            reference: reference?,
            sorting_template_name: sorting_template_name?,
            details: details?,
        })
    }
}

impl OutboundDetail {
    fn read(detail: &Object<'_>, lines: &mut HashSet<String>) -> Option<Self> {
        let line_identifier = detail.required("line_identifier", text(IDENTIFIER));
        let program_identifier = detail.required("program_identifier", text(IDENTIFIER));
        let unit_identifier = detail.required("unit_identifier", text(IDENTIFIER));
        let client_unit_identifier = detail.optional("client_unit_identifier", text(WORD));
        let inbound_received_asn = detail.optional("inbound_received_asn", text(WORD));
        let sku = detail.required("sku", text(IDENTIFIER));
        let upc = detail.optional("upc", text(WORD));
        let quantity = detail.required("quantity", integer(1..=1));
        let vendor_identifier = detail.optional("vendor_identifier", text(WORD));
        let serial_number = detail.optional("serial_number", text(WORD));
        let condition = detail.required("condition", one_of(&Condition::WORDS));
        let flags = detail.optional("eligibility_flags", array(0..=MAX_FLAGS, text(WORD)));
        let merchant = detail.optional("merchant", text(WORD));
        if let Some(line) = &line_identifier
            && !lines.insert(line.clone())
        {
            detail.invalid("line_identifier", "another line has this identifier");
        }
        Some(Self {
            line_identifier: line_identifier?,
            program_identifier: program_identifier?,
            unit_identifier: unit_identifier?,
            client_unit_identifier: client_unit_identifier?,
            inbound_received_asn: inbound_received_asn?,
            sku: sku?,
            upc: upc?,
            quantity: quantity?,
            vendor_identifier: vendor_identifier?,
            serial_number: serial_number?,
            condition: condition?,
            eligibility_flags: flags?,
            merchant: merchant?,
        })
    }
}
