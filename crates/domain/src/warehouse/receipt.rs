//! The inventory receipt, which reports that an announced unit arrived.
//!
//! The warehouse reports its observations. [`InventoryReceipt::complete`] adds the fields of the
//! merchant's ASN and completes the message.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use uuid::Uuid;

use super::condition::Condition;
use super::identifier::{Identifier, asin, code, identifier};
use super::inbound::{InboundHeader, InboundLine, Location};
use super::limits::{IDENTIFIER, OPTIONAL_TEXT};
use super::reference::{Reference, ReferenceType};
use super::unit_fields::UnitFields;
use super::unit_received::UnitReceived;
use crate::access::MerchantId;
use crate::json::{Code, FieldError, Object, object, read_fields, text, variant};

/// A receipt. Required are the ASN, the line, and either the condition or the reason of a rejection.
/// The ASN supplies other absent fields.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InventoryReceipt {
    pub program_identifier: Option<Identifier>,
    pub asn_number: Identifier,
    pub shipment_identifier: Option<Identifier>,
    pub from: Option<Location>,
    pub to: Option<ReceivingLocation>,
    pub carton_identifier: Option<Identifier>,
    pub reference: Option<Reference>,
    pub line_identifier: Identifier,
    pub reference_line_identifier: Option<Identifier>,
    /// Required when the ASN does not identify the unit.
    pub unit_identifier: Option<Identifier>,
    #[schema(max_length = 255)]
    pub sku: Option<String>,
    pub upc: Option<Identifier>,
    pub serial_number: Option<Identifier>,
    /// Optional for a rejected unit.
    pub initial_condition: Option<Condition>,
    #[schema(max_length = 255)]
    pub initial_channel: Option<String>,
    #[schema(max_length = 255)]
    pub return_reason: Option<String>,
    #[schema(max_length = 255)]
    pub user_login: Option<String>,
    #[schema(max_length = 255)]
    pub merchant: Option<String>,
    #[schema(max_length = 255)]
    pub concept: Option<String>,
    /// Ten letters and digits, or a number.
    pub asin: Option<Identifier>,
    pub tracking_number: Option<Identifier>,
    pub location_identifier: Option<Identifier>,
    pub client_unit_identifier: Option<Identifier>,
    #[schema(min_length = 1, max_length = 255)]
    pub reject_reason: Option<String>,
}

/// The location where the unit was received.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceivingLocation {
    /// The internal id of the warehouse.
    pub identifier: Identifier,
    #[serde(rename = "type")]
    #[schema(max_length = 255)]
    pub kind: Option<String>,
    /// The destination according to the ASN.
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
            upc: receipt.optional("upc", code),
            serial_number: receipt.optional("serial_number", code),
            reject_reason: receipt.optional("reject_reason", text(IDENTIFIER)),
            initial_condition: Self::read_condition(receipt),
            initial_channel: optional_text("initial_channel"),
            return_reason: optional_text("return_reason"),
            user_login: optional_text("user_login"),
            merchant: optional_text("merchant"),
            concept: optional_text("concept"),
            asin: receipt.optional("asin", asin),
            tracking_number: receipt.optional("tracking_number", code),
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

    /// Adds absent fields from the ASN, from the line before the header. `path` returns the JSONPath
    /// of a field of this receipt. The identifiers of a line with several units do not identify a
    /// unit, so they are not used.
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
        }
        fill(&mut self.unit_identifier, &self.client_unit_identifier.clone());
        fill_text(&mut self.sku, &detail.sku);
        fill_text(&mut self.return_reason, &detail.return_reason);
        for fields in [&detail.unit_fields, &header.unit_fields] {
            self.fill_unit_fields(fields, detail.quantity == 1);
        }
        if self.unit_identifier.is_none() {
            let field = path("unit_identifier");
            let code = Code::MissingField;
            let detail = Some("the line of the ASN does not identify one unit".to_owned());
            return Err(FieldError { field, code, detail });
        }
        Ok(())
    }

    fn fill_unit_fields(&mut self, fields: &UnitFields, is_one_unit: bool) {
        fill_text(&mut self.merchant, &fields.merchant);
        fill_text(&mut self.concept, &fields.concept);
        fill_code(&mut self.asin, &fields.asin);
        fill_code(&mut self.upc, &fields.upc);
        fill_code(&mut self.tracking_number, &fields.tracking_number);
        if is_one_unit {
            fill_code(&mut self.serial_number, &fields.serial_number);
        }
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
            upc: self.upc.as_ref().map(text),
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
    if expected.is_some() && field.as_ref().is_none_or(String::is_empty) {
        field.clone_from(expected);
    }
}

/// Fills an absent or empty code.
fn fill_code(field: &mut Option<Identifier>, expected: &Option<Identifier>) {
    if expected.is_some() && field.as_ref().is_none_or(Identifier::is_empty) {
        field.clone_from(expected);
    }
}
