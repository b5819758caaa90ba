//! ASNs, receipts and drop shipments, as warehouse-notifier shows them.

use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::warehouse::{AsnStatus, Identifier, InventoryReceipt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{EnumString, IntoStaticStr};
use utoipa::ToSchema;
use uuid::Uuid;

/// A kind of record.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    ToSchema,
    IntoStaticStr,
    EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RecordKind {
    InboundAsn,
    OutboundShipment,
    DropShipment,
}

/// A record of a merchant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RecordView {
    pub merchant: MerchantId,
    pub kind: RecordKind,
    /// The number of the ASN, or the order identifier of a drop shipment.
    pub number: String,
    /// The time at which the record first had the number that was searched for.
    pub created_at: DateTime<Utc>,
}

/// A shipment and the messages that it is split into.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShipmentView {
    #[schema(example = "ASN-1001")]
    pub asn_number: String,
    #[schema(example = "freight")]
    pub shipment_type: String,
    pub status: AsnStatus,
    pub ship_date: DateTime<Utc>,
    pub shipment_identifier: String,
    pub channel: String,
    pub units: usize,
    /// In order of delivery.
    pub messages: Vec<MessageView>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A shipment with its parties. The responses to reports leave them out: they are stored, and must have no personal
/// data.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShipmentDetails {
    #[serde(flatten)]
    pub shipment: ShipmentView,
    #[schema(value_type = Object)]
    pub from: Value,
    /// With the address.
    #[schema(value_type = Object)]
    pub to: Value,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageView {
    /// The shipment's number, with a suffix if the shipment has several messages.
    pub asn_number: String,
    pub units: usize,
}

/// A shipment in a list.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShipmentSummary {
    pub merchant: MerchantId,
    pub asn_number: String,
    pub shipment_type: String,
    pub status: AsnStatus,
    pub ship_date: DateTime<Utc>,
    pub units: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// An ASN in a list.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AsnSummary {
    pub merchant: MerchantId,
    pub asn_number: Identifier,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shipment_identifier: Option<Identifier>,
    pub lines: i32,
    pub expected: i64,
    /// Counted up to 1,000; `GET /v1/inbound_asns/{asn_number}` counts all.
    pub received: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A receipt with its message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReceiptDetails {
    #[schema(value_type = MerchantId)]
    pub merchant: String,
    pub id: Uuid,
    pub received_at: DateTime<Utc>,
    /// The message to the merchant.
    pub message: InventoryReceipt,
}

/// A confirmation or cancellation in a list.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DropShipmentView {
    #[schema(value_type = MerchantId)]
    pub merchant: String,
    pub id: Uuid,
    /// `confirmation`, `cancellation` or `partial_cancellation`.
    #[schema(example = "confirmation")]
    pub kind: String,
    /// The merchant's identifier of the order.
    pub order: String,
    pub created_at: DateTime<Utc>,
}
