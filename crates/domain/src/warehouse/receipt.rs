//! A unit arrived that a merchant had announced.
//!
//! A warehouse reports what it saw; [`InventoryReceipt::complete`] adds what the merchant's own
//! ASN says, and then it is the message.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::identifier::{Identifier, identifier};
use super::inbound::{InboundHeader, InboundLine, Location};
use super::reference::{Condition, Reference, ReferenceType};
use super::unit_received::UnitReceived;
use super::{IDENTIFIER, WORD};
use crate::access::MerchantId;
use crate::json::{
    Code, Document, FieldError, Object, ValidationError, array, object, one_of, parsed, text,
};

/// A batch holds at most this many units.
const MAX_RECEIPTS: usize = 10_000;

/// A receipt. Asked for are the ASN, the line, and the condition or why the unit was rejected; what
/// else is left out comes from the ASN.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InventoryReceipt {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_identifier: Option<Identifier>,
    pub asn_number: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipment_identifier: Option<Identifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Location>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ReceivingLocation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carton_identifier: Option<Identifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    pub line_identifier: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_line_identifier: Option<Identifier>,
    /// Needed when the ASN does not name the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_identifier: Option<Identifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub sku: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub upc: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub serial_number: Option<String>,
    /// Not needed for a unit that was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_condition: Option<Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub initial_channel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub return_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub user_login: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub merchant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub concept: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9]{10}$")]
    pub asin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub tracking_number: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location_identifier: Option<Identifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_unit_identifier: Option<Identifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255)]
    pub reject_reason: Option<String>,
}

/// Where the unit was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceivingLocation {
    /// The internal id of the warehouse.
    pub identifier: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "type")]
    #[schema(max_length = 255)]
    pub kind: Option<String>,
    /// Where the ASN sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_identifier: Option<Identifier>,
}

/// What an ASN says of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedUnit<'a> {
    pub header: &'a InboundHeader,
    pub line: &'a InboundLine,
}

/// What a warehouse reports at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptBatch {
    pub receipts: Vec<InventoryReceipt>,
    /// Whether they came in a list.
    batch: bool,
}

/// One receipt, or a list of them.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum ReceiptsRequest {
    One(Box<InventoryReceipt>),
    Batch(ReceiptBatchRequest),
}

/// Received together or not at all.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is read field by field; this is its schema")]
pub struct ReceiptBatchRequest {
    #[schema(min_items = 1, max_items = 10_000)]
    receipts: Vec<InventoryReceipt>,
}

impl ReceiptBatch {
    pub fn read(document: &Document) -> Result<Self, ValidationError> {
        document.read(object(|body| {
            let batch = body.has("receipts");
            let receipts = if batch {
                let receipt = object(InventoryReceipt::read);
                body.required("receipts", array(1..=MAX_RECEIPTS, receipt))
            } else {
                InventoryReceipt::read(body).map(|receipt| vec![receipt])
            };
            Some(Self { receipts: receipts?, batch })
        }))
    }

    /// Where a field of a receipt stands in the body.
    pub fn path(&self, place: usize, field: &str) -> String {
        if self.batch { format!("$.receipts[{place}].{field}") } else { format!("$.{field}") }
    }
}

impl InventoryReceipt {
    fn read(receipt: &Object<'_>) -> Option<Self> {
        let word = |key| receipt.optional(key, text(WORD));
        let id = |key| receipt.optional(key, identifier);
        let program_identifier = id("program_identifier");
        let asn_number = receipt.required("asn_number", identifier);
        let shipment_identifier = id("shipment_identifier");
        let from = receipt.optional("from", object(Location::read));
        let to = receipt.optional("to", object(ReceivingLocation::read));
        let carton_identifier = id("carton_identifier");
        let reference = receipt.optional("reference", object(Reference::read));
        let line_identifier = receipt.required("line_identifier", identifier);
        let reference_line_identifier = id("reference_line_identifier");
        let unit_identifier = id("unit_identifier");
        let (sku, upc, serial_number) = (word("sku"), word("upc"), word("serial_number"));
        let reject_reason = receipt.optional("reject_reason", text(IDENTIFIER));
        let initial_condition = receipt.optional("initial_condition", one_of(&Condition::WORDS));
        if !receipt.has("initial_condition") && !receipt.has("reject_reason") {
            receipt.missing("initial_condition");
        }
        let (channel, return_reason) = (word("initial_channel"), word("return_reason"));
        let (user_login, merchant, concept) =
            (word("user_login"), word("merchant"), word("concept"));
        let asin = receipt.optional("asin", parsed(10..=10, asin));
        let (tracking_number, location) = (word("tracking_number"), id("location_identifier"));
        let client_unit_identifier = id("client_unit_identifier");
        Some(Self {
            program_identifier: program_identifier?,
            asn_number: asn_number?,
            shipment_identifier: shipment_identifier?,
            from: from?,
            to: to?,
            carton_identifier: carton_identifier?,
            reference: reference?,
            line_identifier: line_identifier?,
            reference_line_identifier: reference_line_identifier?,
            unit_identifier: unit_identifier?,
            sku: sku?,
            upc: upc?,
            serial_number: serial_number?,
            initial_condition: initial_condition?,
            initial_channel: channel?,
            return_reason: return_reason?,
            user_login: user_login?,
            merchant: merchant?,
            concept: concept?,
            asin: asin?,
            tracking_number: tracking_number?,
            location_identifier: location?,
            client_unit_identifier: client_unit_identifier?,
            reject_reason: reject_reason?,
        })
    }

    /// Adds what the ASN says and the warehouse did not. `path` names a field of this receipt. A line
    /// of several units names none of them: its identifiers would make them all one.
    pub fn complete(
        &mut self,
        expected: &ExpectedUnit<'_>,
        path: impl Fn(&str) -> String,
    ) -> Result<(), FieldError> {
        let ExpectedUnit { header, line } = expected;
        let detail = &line.detail;
        fill(&mut self.program_identifier, &header.program_identifier);
        fill(&mut self.shipment_identifier, &header.shipment_identifier);
        self.from.get_or_insert_with(|| header.from.clone());
        let to = self.to.get_or_insert_with(|| ReceivingLocation {
            identifier: header.to.identifier.clone(),
            kind: None,
            original_identifier: None,
        });
        fill_text(&mut to.kind, &Some(header.to.kind.clone()));
        to.original_identifier.get_or_insert_with(|| header.to.identifier.clone());
        fill(&mut self.carton_identifier, &line.carton_identifier);
        fill(&mut self.reference, &line.reference);
        fill(&mut self.reference, &header.reference);
        fill(&mut self.reference_line_identifier, &detail.reference_line_identifier);
        if detail.quantity == 1 {
            fill(&mut self.client_unit_identifier, &detail.client_unit_identifier);
            fill(&mut self.unit_identifier, &detail.unit_identifier);
            fill_text(&mut self.serial_number, &detail.serial_number);
        }
        fill(&mut self.unit_identifier, &self.client_unit_identifier.clone());
        fill_text(&mut self.sku, &detail.sku);
        fill_text(&mut self.upc, &detail.upc);
        fill_text(&mut self.return_reason, &detail.return_reason);
        fill_text(&mut self.merchant, &header.merchant);
        fill_text(&mut self.concept, &header.concept);
        fill_text(&mut self.tracking_number, &header.tracking_number);
        if self.unit_identifier.is_none() {
            let (field, code) = (path("unit_identifier"), Code::MissingField);
            let detail = Some(
                "the ASN does not name the unit either: only a line of one unit can".to_owned(),
            );
            return Err(FieldError { field, code, detail });
        }
        Ok(())
    }

    /// What the RMA engine should hear, when the unit belongs to an RMA.
    pub fn unit_received(
        &self,
        merchant: &MerchantId,
        receipt: Uuid,
        received_at: DateTime<Utc>,
    ) -> Option<UnitReceived> {
        let reference = self.reference.as_ref()?;
        let text = |identifier: &Identifier| identifier.to_string();
        (reference.kind == ReferenceType::Rma).then(|| UnitReceived {
            merchant: merchant.clone(),
            rma_identifier: text(&reference.identifier),
            receipt,
            asn_number: text(&self.asn_number),
            reference_line_identifier: self.reference_line_identifier.as_ref().map(text),
            sku: self.sku.clone(),
            upc: self.upc.clone(),
            unit_identifier: self.unit_identifier.as_ref().map(text).unwrap_or_default(),
            condition: self.initial_condition.map(|condition| condition.as_str().to_owned()),
            reject_reason: self.reject_reason.clone(),
            received_at,
        })
    }
}

impl ReceivingLocation {
    fn read(to: &Object<'_>) -> Option<Self> {
        let own = to.required("identifier", identifier);
        let kind = to.optional("type", text(WORD));
        let original_identifier = to.optional("original_identifier", identifier);
        Some(Self { identifier: own?, kind: kind?, original_identifier: original_identifier? })
    }
}

fn fill<T: Clone>(gap: &mut Option<T>, expected: &Option<T>) {
    if gap.is_none() {
        gap.clone_from(expected);
    }
}

/// An empty text says as little as none.
fn fill_text(gap: &mut Option<String>, expected: &Option<String>) {
    if gap.as_deref() == Some("") && expected.is_some() {
        *gap = None;
    }
    fill(gap, expected);
}

fn asin(text: &str) -> Result<String, &'static str> {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { Ok(text.to_owned()) } else { Err("must be ten letters and digits") }
}
