//! What a merchant announces to a warehouse: the units that will arrive, line by line.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::identifier::{Identifier, identifier};
use super::reference::Reference;
use super::{IDENTIFIER, WORD};
use crate::json::{Document, Object, ValidationError, array, integer, object, text};

const MAX_CARTONS: usize = 10_000;
/// An ASN has at most this many lines.
const MAX_LINES: usize = 20_000;
const QUANTITY: std::ops::RangeInclusive<i64> = 1..=100_000;

/// An announcement, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundAsn {
    #[serde(flatten)]
    pub header: InboundHeader,
    #[schema(min_items = 1)]
    pub cartons: Vec<InboundCarton>,
}

/// What holds for every unit of an ASN.
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
    /// What the units belong to, unless their carton says otherwise.
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
    /// Like warehouse, store or customer.
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

/// So many units of one product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundDetail {
    /// Unique in the ASN.
    pub line_identifier: Identifier,
    /// The line in the reference: of an RMA, the order line's identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_line_identifier: Option<Identifier>,
    /// The unit of a line of one; unique in the ASN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_identifier: Option<Identifier>,
    /// Stands in for `unit_identifier` where that is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_unit_identifier: Option<Identifier>,
    /// Every line has a SKU or a UPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub sku: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub upc: Option<String>,
    /// One unless given.
    #[schema(required = false, minimum = 1, maximum = 100_000)]
    pub quantity: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub serial_number: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub return_reason: Option<String>,
}

/// A line with what its carton says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboundLine {
    #[serde(flatten)]
    pub detail: InboundDetail,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carton_identifier: Option<Identifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

/// What the lines of an ASN are called, and the units that they name.
#[derive(Default)]
struct Seen {
    lines: HashSet<String>,
    units: HashSet<String>,
}

impl Seen {
    /// Notes the unit of a line by what it will be known by when it is received: a second one of
    /// that name would be taken for the first.
    fn note_unit(&mut self, detail: &Object<'_>, names: [&Option<Option<Identifier>>; 2]) {
        let fields = ["unit_identifier", "client_unit_identifier"];
        let given = fields.iter().zip(names).find_map(|(field, name)| match name {
            Some(Some(name)) => Some((field, name)),
            _ => None,
        });
        if let Some((field, name)) = given
            && !self.units.insert(name.to_string())
        {
            detail.invalid(field, "another line names this unit");
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

    /// The units that are expected.
    pub fn units(&self) -> i64 {
        self.cartons.iter().flat_map(|carton| &carton.details).map(|detail| detail.quantity).sum()
    }

    /// Every line with what its carton says.
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
        let asn_number = asn.required("asn_number", identifier);
        let program_identifier = asn.optional("program_identifier", identifier);
        let shipment_identifier = asn.optional("shipment_identifier", identifier);
        let from = asn.required("from", object(Location::read));
        let to = asn.required("to", object(Location::read));
        let tracking_number = asn.optional("tracking_number", text(WORD));
        let reference = asn.optional("reference", object(Reference::read));
        let merchant = asn.optional("merchant", text(WORD));
        let concept = asn.optional("concept", text(WORD));
        Some(Self {
            asn_number: asn_number?,
            program_identifier: program_identifier?,
            shipment_identifier: shipment_identifier?,
            from: from?,
            to: to?,
            tracking_number: tracking_number?,
            reference: reference?,
            merchant: merchant?,
            concept: concept?,
        })
    }
}

impl Location {
    pub(super) fn read(place: &Object<'_>) -> Option<Self> {
        let identifier = place.required("identifier", identifier);
        let kind = place.required("type", text(IDENTIFIER));
        Some(Self { identifier: identifier?, kind: kind? })
    }
}

impl InboundCarton {
    fn read(carton: &Object<'_>, seen: &mut Seen) -> Option<Self> {
        let own = carton.optional("identifier", identifier);
        let reference = carton.optional("reference", object(Reference::read));
        let detail = object(|detail| InboundDetail::read(detail, seen));
        let details = carton.required("details", array(1..=MAX_LINES, detail));
        Some(Self { identifier: own?, reference: reference?, details: details? })
    }
}

impl InboundDetail {
    fn read(detail: &Object<'_>, seen: &mut Seen) -> Option<Self> {
        let line_identifier = detail.required("line_identifier", identifier);
        let reference_line_identifier = detail.optional("reference_line_identifier", identifier);
        let unit_identifier = detail.optional("unit_identifier", identifier);
        let client_unit_identifier = detail.optional("client_unit_identifier", identifier);
        let sku = detail.optional("sku", text(WORD));
        let upc = detail.optional("upc", text(WORD));
        let quantity = detail.optional("quantity", integer(QUANTITY));
        let serial_number = detail.optional("serial_number", text(WORD));
        let return_reason = detail.optional("return_reason", text(WORD));
        if let Some(line) = &line_identifier
            && !seen.lines.insert(line.to_string())
        {
            detail.invalid("line_identifier", "another line has this identifier");
        }
        // A line of several units names none of them.
        if matches!(quantity, Some(None | Some(1))) {
            seen.note_unit(detail, [&unit_identifier, &client_unit_identifier]);
        }
        let named = |word: &Option<Option<String>>| !matches!(word, Some(None)) && !empty(word);
        if !named(&sku) && !named(&upc) {
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

fn empty(word: &Option<Option<String>>) -> bool {
    matches!(word, Some(Some(word)) if word.is_empty())
}
