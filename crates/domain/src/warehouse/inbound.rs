//! The inbound ASN, with which a merchant announces units to a warehouse.
//!
//! A `read` function returns `None` after it has reported the error, see [`crate::json`].

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::identifier::{Identifier, asn_number, identifier};
use super::limits::{IDENTIFIER, MAX_CARTONS, OPTIONAL_TEXT};
use super::reference::Reference;
use super::unit_fields::UnitFields;
use crate::json::{Document, Object, ValidationError, array, integer, object, read_fields, text};

/// The maximum number of lines of an ASN.
const MAX_LINES: usize = 20_000;
/// The maximum size of the carton fields, which every line repeats.
const MAX_REPEATED_BYTES: usize = 8 * 1024 * 1024;
const QUANTITY: std::ops::RangeInclusive<i64> = 1..=100_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundAsn {
    #[serde(flatten)]
    pub header: InboundHeader,
    #[schema(min_items = 1, max_items = 10_000)]
    pub cartons: Vec<InboundCarton>,
}

/// The fields that apply to every unit of an ASN.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundHeader {
    /// Unique for the merchant. An integer, or 1 to 255 letters, digits, `-` and `_`.
    pub asn_number: Identifier,
    pub program_identifier: Option<Identifier>,
    /// Groups the ASNs of one order or RMA.
    pub shipment_identifier: Option<Identifier>,
    pub from: Location,
    pub to: Location,
    /// The reference of units whose carton has none.
    pub reference: Option<Reference>,
    #[serde(flatten)]
    pub unit_fields: UnitFields,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Location {
    pub identifier: Identifier,
    /// For example warehouse, store or customer.
    #[serde(rename = "type")]
    #[schema(min_length = 1, max_length = 255)]
    pub kind: String,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundCarton {
    pub identifier: Option<Identifier>,
    pub reference: Option<Reference>,
    #[schema(min_items = 1, max_items = 20_000)]
    pub details: Vec<InboundDetail>,
}

/// A quantity of one product.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundDetail {
    /// Unique in the ASN.
    pub line_identifier: Identifier,
    /// The line of the reference. For an RMA, the order line's identifier.
    pub reference_line_identifier: Option<Identifier>,
    /// The unit of a line with quantity 1. Unique in the ASN.
    pub unit_identifier: Option<Identifier>,
    /// Replaces an absent `unit_identifier`.
    pub client_unit_identifier: Option<Identifier>,
    /// Every line has a SKU or a UPC.
    #[schema(max_length = 255)]
    pub sku: Option<String>,
    /// Defaults to 1.
    #[schema(required = false, minimum = 1, maximum = 100_000)]
    pub quantity: i64,
    #[schema(max_length = 255)]
    pub return_reason: Option<String>,
    #[serde(flatten)]
    pub unit_fields: UnitFields,
}

/// A line with the identifier and reference of its carton.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundLine {
    #[serde(flatten)]
    pub detail: InboundDetail,
    pub carton_identifier: Option<Identifier>,
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
            let mut read = Self { header: header?, cartons: cartons? };
            if read.cartons.iter().map(InboundCarton::repeated_bytes).sum::<usize>()
                > MAX_REPEATED_BYTES
            {
                asn.invalid("cartons", "identifiers and references of cartons are too long");
            }
            if read.units() > 1 {
                read.header.unit_fields.serial_number = None;
            }
            Some(read)
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
            asn_number: asn.required("asn_number", asn_number),
            program_identifier: asn.optional("program_identifier", identifier),
            shipment_identifier: asn.optional("shipment_identifier", identifier),
            from: asn.required("from", object(Location::read)),
            to: asn.required("to", object(Location::read)),
            reference: asn.optional("reference", object(Reference::read)),
            unit_fields: UnitFields::read(asn),
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

impl InboundCarton {
    /// The size of the identifier and the reference in all lines.
    fn repeated_bytes(&self) -> usize {
        let reference = self.reference.as_ref();
        let identifiers = [
            self.identifier.as_ref(),
            reference.map(|reference| &reference.identifier),
            reference.and_then(|reference| reference.alternate_identifier.as_ref()),
        ];
        let lengths = identifiers.into_iter().flatten().map(|it| it.to_string().len());
        lengths.sum::<usize>() * self.details.len()
    }
}

impl InboundDetail {
    fn read(detail: &Object<'_>, seen: &mut Seen) -> Option<Self> {
        let line_identifier = detail.required("line_identifier", identifier);
        let reference_line_identifier = detail.optional("reference_line_identifier", identifier);
        let unit_identifier = detail.optional("unit_identifier", identifier);
        let client_unit_identifier = detail.optional("client_unit_identifier", identifier);
        let sku = detail.optional("sku", text(OPTIONAL_TEXT));
        let quantity = detail.optional("quantity", integer(QUANTITY));
        let return_reason = detail.optional("return_reason", text(OPTIONAL_TEXT));
        let unit_fields = UnitFields::read(detail);
        if line_identifier.as_ref().is_some_and(|line| !seen.lines.insert(line.to_string())) {
            detail.invalid("line_identifier", "another line has this identifier");
        }
        // The identifiers of a line with several units do not identify a unit.
        if matches!(quantity, Some(None | Some(1))) {
            seen.add_unit(detail, [&unit_identifier, &client_unit_identifier]);
        }
        // An invalid text counts as present.
        let has_sku =
            sku.as_ref().is_none_or(|sku| sku.as_ref().is_some_and(|sku| !sku.is_empty()));
        let upc = |fields: &UnitFields| fields.upc.as_ref().is_some_and(|upc| !upc.is_empty());
        if !has_sku && !unit_fields.as_ref().is_none_or(upc) {
            detail.missing("sku");
        }
        Some(Self {
            line_identifier: line_identifier?,
            reference_line_identifier: reference_line_identifier?,
            unit_identifier: unit_identifier?,
            client_unit_identifier: client_unit_identifier?,
            sku: sku?,
            quantity: quantity?.unwrap_or(1),
            return_reason: return_reason?,
            unit_fields: unit_fields?,
        })
    }
}
