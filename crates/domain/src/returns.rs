//! Returns: the rules from the shopper's request to the merchant's refund.
//!
//! [`reconcile_units`] derives units from order snapshots, [`crate::policy`] decides whether a
//! unit can be returned, [`Rma`] is a return with its state machines, and [`match_refunds`]
//! assigns refunds to units. Services load, apply, save and publish; they decide nothing.

mod carrier_report;
mod confirmed;
mod deadline;
mod destination;
mod discrepancy;
mod eligibility;
mod email;
mod guarantee;
mod label;
mod message;
mod money;
mod receipt;
mod refund_amounts;
mod refund_matching;
mod refunded_unit;
mod request;
mod resolution;
mod review;
mod rma;
mod shipped_units;
mod status;
mod unit_id;
mod withdrawal;
mod work_list;

pub use crate::merchant::{GiftCardOffer, ReturnMethod};
pub use carrier_report::CarrierReport;
pub use confirmed::{ConfirmedUnit, Replacement, ReturnConfirmed, Variant};
pub use deadline::{Deadline, DeadlineKind, Period};
pub use destination::ReturnDestination;
pub use discrepancy::Discrepancy;
pub use eligibility::{Ineligible, IneligibleCode, StaffOverride};
pub use guarantee::{Guarantee, GuaranteeChange, Waiver};
pub use label::{Label, LabelKind};
pub(crate) use message::GUARANTEES_SINCE;
pub use message::{MessageStatus, RmaItem, RmaMessage, ServiceEvent};
pub use money::{Amounts, RefundFinancials};
pub use receipt::{Finding, Receipt};
pub use refund_amounts::{PaidRefund, check_refund_amounts};
pub use refund_matching::{
    CandidateReturn, CandidateUnit, MatchedRefunds, RefundMatches, RefundedQuantities,
    match_refunds, match_unallocated_refunds, refunded_quantities,
};
pub use refunded_unit::RefundedUnit;
pub use request::{MAX_COMMENT_CHARS, MAX_UNITS, RequestedUnit, ReturnRequest};
pub use resolution::{RefundType, Resolution, ResolutionKind};
pub use review::{DecidedReview, ReturnReview};
pub use rma::{Change, ExchangeStatus, PurchasedUnit, ReturnTerms, Rma, RmaUnit};
pub use shipped_units::{AddedUnit, LineChanges, ShippedUnit, UnitChanges, reconcile_units};
pub use status::{
    GuaranteeState, ReceivingEvent, ReceivingStatus, RmaStatus, StatusEvent, TrackingEvent,
    TrackingStatus, Transition, TransitionError,
};
pub use unit_id::UnitId;
pub use withdrawal::Withdrawal;
pub use work_list::WorkList;

#[cfg(test)]
mod tests;
