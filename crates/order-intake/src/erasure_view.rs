//! An erasure, as merchants and operators read it.

use chrono::{DateTime, Utc};
use domain::access::{InvalidMerchantId, MerchantId};
use domain::erasure::{ErasureCounts, KeptReturn};
use platform::database::DatabaseError;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::store::{ConfirmationRow, ErasureRow};

/// An erasure of a shopper's data and its progress.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Erasure {
    id: Uuid,
    merchant: MerchantId,
    /// `running` while order-intake erases, `waiting` for the other services, or `finished`.
    #[schema(example = "finished")]
    state: String,
    /// E-mail address of the person, or id of the client, that requested it; `retention` for the setting.
    requested_by: String,
    force: bool,
    /// SHA-256 of the shopper's e-mail address in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    email_sha256: Option<String>,
    /// Number of orders.
    orders: i64,
    /// Orders and kept events of order-intake in which data was replaced.
    erased_orders: i64,
    erased_events: i64,
    created_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    finished_at: Option<DateTime<Utc>>,
}

/// An erasure with the confirmations of the other services.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErasureDetails {
    #[serde(flatten)]
    pub(crate) erasure: Erasure,
    /// The services that have erased everything.
    pub(crate) confirmations: Vec<Confirmation>,
    /// Open returns whose data was kept. Erase again when they are closed.
    pub(crate) kept_returns: Vec<KeptReturn>,
}

/// The numbers of records in which one service replaced data.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Confirmation {
    #[schema(example = "rma-engine")]
    service: String,
    #[serde(flatten)]
    counts: ErasureCounts,
    confirmed_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Erasures {
    /// Newest first.
    pub(crate) erasures: Vec<Erasure>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl TryFrom<ErasureRow> for Erasure {
    type Error = DatabaseError;

    fn try_from(row: ErasureRow) -> Result<Self, DatabaseError> {
        let merchant = row.merchant.parse().map_err(|error: InvalidMerchantId| {
            diesel::result::Error::DeserializationError(error.into())
        })?;
        Ok(Self {
            id: row.id,
            merchant,
            state: row.state,
            requested_by: row.requested_by,
            force: row.force,
            email_sha256: row.email_sha256,
            orders: row.orders,
            erased_orders: row.erased_orders,
            erased_events: row.erased_events,
            created_at: row.created_at,
            finished_at: row.finished_at,
        })
    }
}

impl From<ConfirmationRow> for Confirmation {
    fn from(row: ConfirmationRow) -> Self {
        let count = |number: i64| usize::try_from(number).unwrap_or_default();
        let counts = ErasureCounts {
            records: count(row.records),
            events: count(row.events),
            deliveries: count(row.deliveries),
        };
        Self { service: row.service, counts, confirmed_at: row.confirmed_at }
    }
}
