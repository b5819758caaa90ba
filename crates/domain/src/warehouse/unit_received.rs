//! The event that a returned unit arrived in a warehouse.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::MerchantId;
use crate::event::Event;

/// A unit was received against an ASN that refers to an RMA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnitReceived {
    pub merchant: MerchantId,
    pub rma_identifier: String,
    /// The receipt of the unit. A unit that was rejected first has two receipts.
    pub receipt: Uuid,
    pub asn_number: String,
    /// The order line's identifier, from the ASN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_line_identifier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sku: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upc: Option<String>,
    pub unit_identifier: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The reason of a rejection. Absent when the warehouse accepted the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reject_reason: Option<String>,
    pub received_at: DateTime<Utc>,
}

impl Event for UnitReceived {
    const TYPE: &'static str = "unit.received.v1";

    fn subject(&self) -> String {
        format!("{}/{}", self.merchant, self.rma_identifier)
    }
}
