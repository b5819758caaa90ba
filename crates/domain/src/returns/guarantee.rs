//! The guarantee that an exchanged unit comes back.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::GuaranteeState;

/// The guarantee that an exchanged unit comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Guarantee {
    pub state: GuaranteeState,
    /// The time at which the merchant accepted the exchange order.
    pub started_at: DateTime<Utc>,
    /// The amount that was paid for the unit.
    pub amount_cents: i64,
    /// The time at which the merchant was told that the unit did not come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreturned_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiver: Option<Waiver>,
}

/// The decision to do without a unit and its amount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Waiver {
    pub at: DateTime<Utc>,
    /// The person or the client.
    pub by: String,
    pub note: String,
}

/// A change of the state of a unit's guarantee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuaranteeChange {
    /// `None` for a new guarantee.
    pub from: Option<GuaranteeState>,
    pub to: GuaranteeState,
    pub started_at: DateTime<Utc>,
    pub amount_cents: i64,
}

impl Guarantee {
    /// The change from another state to the present one.
    pub(super) fn change(&self, from: Option<GuaranteeState>) -> GuaranteeChange {
        GuaranteeChange {
            from,
            to: self.state,
            started_at: self.started_at,
            amount_cents: self.amount_cents,
        }
    }
}
