//! The events of an erasure. They contain identifiers and digests, and no personal data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::EmailDigest;
use crate::access::MerchantId;
use crate::event::Event;

/// order-intake erased a shopper's personal data in some orders. rma-engine follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShopperErased {
    pub erasure_id: Uuid,
    /// An erasure of many orders has several events, numbered from 1.
    pub batch: i32,
    pub merchant: MerchantId,
    #[schema(max_items = 100)]
    pub order_identifiers: Vec<String>,
    /// The shopper's e-mail address, for returns in which the shopper is the giftee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub email_sha256: Option<EmailDigest>,
    /// Whether open returns are erased too.
    pub force: bool,
    /// Open returns that last changed before this time are erased too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub force_before: Option<DateTime<Utc>>,
}

/// rma-engine erased the personal data of these orders and returns. exchange and warehouse-notifier follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnsErased {
    pub erasure_id: Uuid,
    pub batch: i32,
    pub merchant: MerchantId,
    /// The orders, without those that have an open return.
    pub order_identifiers: Vec<String>,
    /// The returns of these orders that were started before the erasure.
    pub rma_identifiers: Vec<String>,
    /// Returns of other orders in which the shopper is the giftee.
    pub gift_rma_identifiers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub email_sha256: Option<EmailDigest>,
    /// The time at which order-intake erased the orders. Later reports of a warehouse keep the data.
    pub erased_at: DateTime<Utc>,
}

impl ReturnsErased {
    /// The confirmation of a service that keeps the data of no return.
    pub fn confirmed_by(&self, service: &str, counts: ErasureCounts) -> ErasureConfirmed {
        ErasureConfirmed {
            erasure_id: self.erasure_id,
            batch: self.batch,
            merchant: self.merchant.clone(),
            service: service.to_owned(),
            counts,
            kept_returns: Vec::new(),
        }
    }
}

/// A service erased the personal data that it stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErasureConfirmed {
    pub erasure_id: Uuid,
    pub batch: i32,
    pub merchant: MerchantId,
    #[schema(example = "rma-engine")]
    pub service: String,
    pub counts: ErasureCounts,
    /// Open returns whose data stays until they are closed.
    pub kept_returns: Vec<KeptReturn>,
}

/// The numbers of records in which personal data was replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErasureCounts {
    /// Orders, returns, exchange orders, shipments and receipts.
    pub records: usize,
    /// Events in the outbox and kept events.
    pub events: usize,
    /// Messages to the merchant.
    pub deliveries: usize,
}

/// An open return whose personal data was kept, and one of its orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptReturn {
    pub rma_identifier: String,
    pub order_identifier: String,
}

impl Event for ShopperErased {
    const TYPE: &'static str = "shopper.erased.v1";

    fn subject(&self) -> String {
        format!("erasure/{}", self.erasure_id)
    }
}

impl Event for ReturnsErased {
    const TYPE: &'static str = "returns.erased.v1";

    fn subject(&self) -> String {
        format!("erasure/{}", self.erasure_id)
    }
}

impl Event for ErasureConfirmed {
    const TYPE: &'static str = "shopper.erasure_confirmed.v1";

    fn subject(&self) -> String {
        format!("erasure/{}", self.erasure_id)
    }
}
