//! A unit with the refund that covers it.

use std::sync::Arc;

use super::UnitId;

/// A unit that a refund covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundedUnit {
    pub refund_identifier: Arc<str>,
    /// The return that contains the unit, if any.
    pub rma_identifier: Option<String>,
    pub unit: UnitId,
}
