//! Returns: what a shopper sends back, unit by unit, and what the merchant is told of it.
//!
//! [`reconcile_line`] keeps the ledger of shipped units; [`eligibility`] judges a unit;
//! [`ReturnRequest`] is what a shopper asks for; [`Rma`] is a return, and everything that can
//! happen to it; [`match_refunds`] finds out which units a merchant's refunds cover. Whoever
//! stores returns loads, applies, saves and announces; no rule is decided anywhere else.

mod choice;
mod confirmed;
mod discrepancy;
mod eligibility;
mod ledger;
mod message;
mod money;
mod receipt;
mod refund;
mod request;
mod resolution;
mod rma;
mod status;
mod words;

pub use choice::{ReturnMethod, UnitId};
pub use confirmed::{ConfirmedUnit, GiftCardOffer, Replacement, ReturnConfirmed, Variant};
pub use discrepancy::Discrepancy;
pub use eligibility::{
    Ineligible, IneligibleCode, NON_RETURNABLE_TAGS, StaffOverride, UnitFacts, check_eligibility,
    eligibility, window_ends_at,
};
pub use ledger::{AddedUnit, ShippedUnit, UnitChanges, reconcile_line, reconcile_missing_line};
pub use message::{RmaItem, RmaMessage, ServiceEvent, event_schemas, message_schema};
pub use money::{Amounts, RefundFinancials};
pub use receipt::{Finding, Receipt};
pub use refund::{
    CandidateReturn, CandidateUnit, MatchedRefunds, RefundMatches, RefundedQuantities,
    RefundedUnit, match_refunds, match_unallocated_refunds, refunded_quantities,
};
pub use request::{MAX_UNITS, RequestedUnit, ReturnRequest};
pub use resolution::{RefundType, Resolution};
pub use rma::{CarrierReport, Change, ExchangeStatus, PurchasedUnit, Rma, RmaUnit};
pub use status::{
    ReceivingEvent, ReceivingStatus, RmaStatus, StatusEvent, TrackingEvent, TrackingStatus,
    Transition, TransitionError,
};
pub use words::UnknownWord;

#[cfg(test)]
mod tests;
