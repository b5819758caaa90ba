//! Label requests, as rma-engine shows them.

use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::labels::{LabelFormat, LabelState, RefusalReason};
use domain::returns::UnitId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A request for the label of a parcel, with its label if there is one.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = LabelRequestSummary)]
pub struct LabelRequestView {
    /// Also the id of the message to the provider; `/v1/deliveries/{id}` shows whether it arrived.
    pub label_request_id: Uuid,
    pub merchant: MerchantId,
    pub rma_identifier: String,
    /// The number of the parcel in the return, from 1.
    pub parcel: i32,
    pub state: LabelState,
    /// The units in the parcel.
    pub units: Vec<UnitId>,
    pub requested_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking_number: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The URL at which the shopper gets the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_url: Option<String>,
    /// The format of a label that is a document, as long as it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<LabelFormat>,
    /// Whether there is a code that the carrier scans on the shopper's screen.
    #[serde(default)]
    pub has_qr_code: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_cents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// The reason why no label is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<RefusalReason>,
    /// The words of the provider about a refusal, or the failure of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Since when the message to the provider is dead. A replay can still get the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undeliverable_since: Option<DateTime<Utc>>,
    /// The message that canceled the request, sent as `webhook-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<Uuid>,
}
