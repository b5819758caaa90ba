//! The inbound ASN, with which a merchant announces units to a warehouse.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::identifier::{Identifier, identifier};
use super::limits::{IDENTIFIER, MAX_CARTONS, OPTIONAL_TEXT};
use super::reference::Reference;
use crate::json::{Document, Object, ValidationError, array, integer, object, read_fields, text};

/// The maximum number of lines of an ASN.
const MAX_LINES: usize = 20_000;
const QUANTITY: std::ops::RangeInclusive<i64> = 1..=100_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundAsn {
    #[serde(flatten)]
    pub header: InboundHeader,
    #[schema(min_items = 1)]
    pub cartons: Vec<InboundCarton>,
}

/// The fields that apply to every unit of an ASN.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundHeader {
    /// Unique for the merchant.
    pub asn_number: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_identifier: Option<Identifier>,
    /// Groups the ASNs of one order or RMA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipment_identifier: Option<Identifier>,
    pub from: Location,
    pub to: Location,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub tracking_number: Option<String>,
    /// The reference of units whose carton has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// Typically the owner of the inventory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub merchant: Option<String>,
    /// Typically a brand of the merchant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub concept: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Location {
    pub identifier: Identifier,
    /// For example warehouse, store or customer.
    #[serde(rename = "type")]
    #[schema(min_length = 1, max_length = 255)]
    pub kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundCarton {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<Identifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    #[schema(min_items = 1)]
    pub details: Vec<InboundDetail>,
}

/// A quantity of one product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundDetail {
    /// Unique in the ASN.
    pub line_identifier: Identifier,
    /// The line of the reference. For an RMA, the order line's identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_line_identifier: Option<Identifier>,
    /// The unit of a line with quantity 1. Unique in the ASN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_identifier: Option<Identifier>,
    /// Replaces an absent `unit_identifier`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_unit_identifier: Option<Identifier>,
    /// Every line has a SKU or a UPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub sku: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub upc: Option<String>,
    /// Defaults to 1.
    #[schema(required = false, minimum = 1, maximum = 100_000)]
    pub quantity: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub serial_number: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub return_reason: Option<String>,
}

/// A line with the identifier and reference of its carton.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundLine {
    #[serde(flatten)]
    pub detail: InboundDetail,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carton_identifier: Option<Identifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

/// The line and unit identifiers of an ASN so far.
#[derive(Default)]
struct Seen {
    lines: HashSet<String>,
    units: HashSet<String>,
}

impl Seen {
    /// Adds the identifier by which the unit of a line will be received. It must be unique, because
    /// a second unit with the same identifier would be taken for the first.
    fn add_unit(&mut self, line: &Object<'_>, identifiers: [&Option<Option<Identifier>>; 2]) {
        let fields = ["unit_identifier", "client_unit_identifier"];
        let given = fields.iter().zip(identifiers).find_map(|(field, identifier)| {
            identifier.as_ref().and_then(Option::as_ref).map(|identifier| (field, identifier))
        });
        if let Some((field, identifier)) = given
            && !self.units.insert(identifier.to_string())
        {
            line.invalid(field, "another line names this unit");
        }
    }
}

impl InboundAsn {
    pub fn read(document: &Document) -> Result<Self, ValidationError> {
        document.read(object(|asn| {
            let mut seen = Seen::default();
            let header = InboundHeader::read(asn);
            let carton = object(|carton| InboundCarton::read(carton, &mut seen));
            let cartons = asn.required("cartons", array(1..=MAX_CARTONS, carton));
            if seen.lines.len() > MAX_LINES {
                asn.invalid("cartons", format!("must hold at most {MAX_LINES} lines"));
            }
            Some(Self { header: header?, cartons: cartons? })
        }))
    }

    /// The number of expected units.
    pub fn units(&self) -> i64 {
        self.cartons.iter().flat_map(|carton| &carton.details).map(|detail| detail.quantity).sum()
    }

    /// The lines of all cartons.
    pub fn into_lines(self) -> impl Iterator<Item = InboundLine> {
        self.cartons.into_iter().flat_map(|carton| {
            let InboundCarton { identifier, reference, details } = carton;
            details.into_iter().map(move |detail| InboundLine {
                detail,
                carton_identifier: identifier.clone(),
                reference: reference.clone(),
            })
        })
    }
}

impl InboundHeader {
    fn read(asn: &Object<'_>) -> Option<Self> {
        read_fields!(Self {
            asn_number: asn.required("asn_number", identifier),
            program_identifier: asn.optional("program_identifier", identifier),
            shipment_identifier: asn.optional("shipment_identifier", identifier),
            from: asn.required("from", object(Location::read)),
            to: asn.required("to", object(Location::read)),
            tracking_number: asn.optional("tracking_number", text(OPTIONAL_TEXT)),
            reference: asn.optional("reference", object(Reference::read)),
            merchant: asn.optional("merchant", text(OPTIONAL_TEXT)),
            concept: asn.optional("concept", text(OPTIONAL_TEXT)),
        })
    }
}

impl Location {
    pub(super) fn read(location: &Object<'_>) -> Option<Self> {
        read_fields!(Self {
            identifier: location.required("identifier", identifier),
            kind: location.required("type", text(IDENTIFIER)),
        })
    }
}

impl InboundCarton {
    fn read(carton: &Object<'_>, seen: &mut Seen) -> Option<Self> {
        let detail = object(|detail| InboundDetail::read(detail, seen));
        read_fields!(Self {
            identifier: carton.optional("identifier", identifier),
            reference: carton.optional("reference", object(Reference::read)),
            details: carton.required("details", array(1..=MAX_LINES, detail)),
        })
    }
}

impl InboundDetail {
    fn read(detail: &Object<'_>, seen: &mut Seen) -> Option<Self> {
        let line_identifier = detail.required("line_identifier", identifier);
        let reference_line_identifier = detail.optional("reference_line_identifier", identifier);
        let unit_identifier = detail.optional("unit_identifier", identifier);
        let client_unit_identifier = detail.optional("client_unit_identifier", identifier);
        let sku = detail.optional("sku", text(OPTIONAL_TEXT));
        let upc = detail.optional("upc", text(OPTIONAL_TEXT));
        let quantity = detail.optional("quantity", integer(QUANTITY));
        let serial_number = detail.optional("serial_number", text(OPTIONAL_TEXT));
        let return_reason = detail.optional("return_reason", text(OPTIONAL_TEXT));
        if line_identifier.as_ref().is_some_and(|line| !seen.lines.insert(line.to_string())) {
            detail.invalid("line_identifier", "another line has this identifier");
        }
        // The identifiers of a line with several units do not identify a unit.
        if matches!(quantity, Some(None | Some(1))) {
            seen.add_unit(detail, [&unit_identifier, &client_unit_identifier]);
        }
        if is_absent(&sku) && is_absent(&upc) {
            detail.missing("sku");
        }
        Some(Self {
            line_identifier: line_identifier?,
            reference_line_identifier: reference_line_identifier?,
            unit_identifier: unit_identifier?,
            client_unit_identifier: client_unit_identifier?,
            sku: sku?,
            upc: upc?,
            quantity: quantity?.unwrap_or(1),
            serial_number: serial_number?,
            return_reason: return_reason?,
        })
    }
}

/// Whether a text is absent, `null` or empty. An invalid text counts as present.
fn is_absent(text: &Option<Option<String>>) -> bool {
    text.as_ref().is_some_and(|text| text.as_ref().is_none_or(String::is_empty))
}
