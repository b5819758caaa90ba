//! The inventory receipt, which reports that an announced unit arrived.
//!
//! The warehouse reports its observations. [`InventoryReceipt::complete`] adds the fields of the
//! merchant's ASN and completes the message.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::condition::Condition;
use super::identifier::{Identifier, identifier};
use super::inbound::{InboundHeader, InboundLine, Location};
use super::limits::{IDENTIFIER, OPTIONAL_TEXT};
use super::reference::{Reference, ReferenceType};
use super::unit_received::UnitReceived;
use crate::access::MerchantId;
use crate::json::{Code, FieldError, Object, object, parsed, read_fields, text, variant};

/// A receipt. Required are the ASN, the line, and either the condition or the reason of a rejection.
/// The ASN supplies other absent fields.
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
    /// Required when the ASN does not identify the unit.
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
    /// Optional for a rejected unit.
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

/// The location where the unit was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceivingLocation {
    /// The internal id of the warehouse.
    pub identifier: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "type")]
    #[schema(max_length = 255)]
    pub kind: Option<String>,
    /// The destination according to the ASN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_identifier: Option<Identifier>,
}

/// The fields of a unit in the ASN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedUnit<'a> {
    pub header: &'a InboundHeader,
    pub line: &'a InboundLine,
}

impl InventoryReceipt {
    pub(super) fn read(receipt: &Object<'_>) -> Option<Self> {
        let optional_text = |key| receipt.optional(key, text(OPTIONAL_TEXT));
        let optional_id = |key| receipt.optional(key, identifier);
        read_fields!(Self {
            program_identifier: optional_id("program_identifier"),
            asn_number: receipt.required("asn_number", identifier),
            shipment_identifier: optional_id("shipment_identifier"),
            from: receipt.optional("from", object(Location::read)),
            to: receipt.optional("to", object(ReceivingLocation::read)),
            carton_identifier: optional_id("carton_identifier"),
            reference: receipt.optional("reference", object(Reference::read)),
            line_identifier: receipt.required("line_identifier", identifier),
            reference_line_identifier: optional_id("reference_line_identifier"),
            unit_identifier: optional_id("unit_identifier"),
            sku: optional_text("sku"),
            upc: optional_text("upc"),
            serial_number: optional_text("serial_number"),
            reject_reason: receipt.optional("reject_reason", text(IDENTIFIER)),
            initial_condition: Self::read_condition(receipt),
            initial_channel: optional_text("initial_channel"),
            return_reason: optional_text("return_reason"),
            user_login: optional_text("user_login"),
            merchant: optional_text("merchant"),
            concept: optional_text("concept"),
            asin: receipt.optional("asin", parsed(10..=10, asin)),
            tracking_number: optional_text("tracking_number"),
            location_identifier: optional_id("location_identifier"),
            client_unit_identifier: optional_id("client_unit_identifier"),
        })
    }

    /// Reads the condition, which is required unless the unit was rejected.
    fn read_condition(receipt: &Object<'_>) -> Option<Option<Condition>> {
        let condition = receipt.optional("initial_condition", variant);
        if !receipt.has("initial_condition") && !receipt.has("reject_reason") {
            receipt.missing("initial_condition");
        }
        condition
    }

    /// Adds absent fields from the ASN. `path` returns the JSONPath of a field of this receipt. The
    /// identifiers of a line with several units do not identify a unit, so they are not used.
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

    /// The event for a unit of an RMA.
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
        read_fields!(Self {
            identifier: to.required("identifier", identifier),
            kind: to.optional("type", text(OPTIONAL_TEXT)),
            original_identifier: to.optional("original_identifier", identifier),
        })
    }
}

fn fill<T: Clone>(field: &mut Option<T>, expected: &Option<T>) {
    if field.is_none() {
        field.clone_from(expected);
    }
}

/// Fills an absent or empty text.
fn fill_text(field: &mut Option<String>, expected: &Option<String>) {
    if field.as_deref() == Some("") && expected.is_some() {
        *field = None;
    }
    fill(field, expected);
}

fn asin(text: &str) -> Result<String, &'static str> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain { Ok(text.to_owned()) } else { Err("must be ten letters and digits") }
}
