//! Whether a unit can be returned. What a shopper is shown and what a return is held to are the
//! same function.
//!
//! One verdict, one code: reasons that nothing can lift come first, so that a code which staff
//! may override is the only kind left.

use chrono::{DateTime, Days, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::words;
use crate::merchant::Settings;
use crate::order;

/// Line tags that forbid a return with every merchant.
pub const NON_RETURNABLE_TAGS: [&str; 3] = ["FinalSale", "gift-card", "Thirdparty"];

/// What the verdict on a unit rests on.
#[derive(Debug, Clone, Copy)]
pub struct UnitFacts<'a> {
    pub order_status: order::OrderStatus,
    pub order_created_at: DateTime<Utc>,
    /// Whether the unit is on the ledger and was not removed.
    pub is_shipped: bool,
    pub shipped_at: Option<DateTime<Utc>>,
    pub line_tags: &'a [String],
    /// The return that it is in, unless that was canceled.
    pub rma_identifier: Option<&'a str>,
    pub is_refunded: bool,
    /// Whether an exchange is wanted for it although its order can have no other.
    pub is_second_exchange: bool,
}

/// Why a unit cannot be returned.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum IneligibleCode {
    OrderCancelled,
    NotShipped,
    AlreadyReturned,
    AlreadyRefunded,
    /// Its order can have no other exchange: it can be returned for a refund.
    AlreadyExchanged,
    FinalSale,
    WindowExpired,
}

impl IneligibleCode {
    pub const ALL: [Self; 7] = [
        Self::OrderCancelled,
        Self::NotShipped,
        Self::AlreadyReturned,
        Self::AlreadyRefunded,
        Self::AlreadyExchanged,
        Self::FinalSale,
        Self::WindowExpired,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::OrderCancelled => "order_cancelled",
            Self::NotShipped => "not_shipped",
            Self::AlreadyReturned => "already_returned",
            Self::AlreadyRefunded => "already_refunded",
            Self::AlreadyExchanged => "already_exchanged",
            Self::FinalSale => "final_sale",
            Self::WindowExpired => "window_expired",
        }
    }

    /// Whether staff may decide otherwise: the merchant's terms give way, facts do not.
    pub fn is_overridable(self) -> bool {
        matches!(self, Self::FinalSale | Self::WindowExpired)
    }
}

/// A unit cannot be returned, said to machines and to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{detail}")]
pub struct Ineligible {
    pub code: IneligibleCode,
    pub detail: String,
}

/// Who let a unit be returned against the merchant's terms, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StaffOverride {
    #[schema(min_length = 1, max_length = 255)]
    pub by: String,
    #[schema(min_length = 1, max_length = 1000)]
    pub reason: String,
}

/// Whether the unit can be returned at `now`.
pub fn eligibility(
    unit: &UnitFacts<'_>,
    settings: &Settings,
    now: DateTime<Utc>,
) -> Result<(), Ineligible> {
    use IneligibleCode::{
        AlreadyExchanged, AlreadyRefunded, AlreadyReturned, FinalSale, NotShipped, OrderCancelled,
        WindowExpired,
    };
    let refuse = |code, detail| Err(Ineligible { code, detail });
    if unit.order_status == order::OrderStatus::Cancelled {
        return refuse(OrderCancelled, "the order was cancelled".to_owned());
    }
    if !unit.is_shipped {
        return refuse(NotShipped, "the unit has not shipped".to_owned());
    }
    if let Some(rma) = unit.rma_identifier {
        return refuse(AlreadyReturned, format!("the unit is already in return {rma}"));
    }
    if unit.is_refunded {
        return refuse(AlreadyRefunded, "the unit was already refunded".to_owned());
    }
    if unit.is_second_exchange {
        let detail = "an exchange was already made against the order: choose a refund";
        return refuse(AlreadyExchanged, detail.to_owned());
    }
    if let Some(tag) = unit.line_tags.iter().find(|tag| forbids_return(tag, settings)) {
        return refuse(FinalSale, format!("items tagged {tag} cannot be returned"));
    }
    let ends_at = window_ends_at(unit, settings);
    if now >= ends_at {
        let last_day = (ends_at - TimeDelta::seconds(1)).with_timezone(&zone(settings));
        let last_day = last_day.format("%-d %B %Y");
        return refuse(WindowExpired, format!("the unit could be returned until {last_day}"));
    }
    Ok(())
}

/// Like [`eligibility`], except that staff may let a unit pass against the merchant's terms. Gives
/// back what was overridden, to be recorded with who and why.
pub fn check_eligibility(
    unit: &UnitFacts<'_>,
    settings: &Settings,
    now: DateTime<Utc>,
    staff: Option<&StaffOverride>,
) -> Result<Option<IneligibleCode>, Ineligible> {
    match eligibility(unit, settings, now) {
        Ok(()) => Ok(None),
        Err(refusal) if staff.is_some() && refusal.code.is_overridable() => Ok(Some(refusal.code)),
        Err(refusal) => Err(refusal),
    }
}

/// The first moment at which the unit can no longer be returned: midnight in the merchant's time
/// zone after the last day. The days count from the day it shipped, or, when the order does not
/// say when that was, from the day the order was created.
pub fn window_ends_at(unit: &UnitFacts<'_>, settings: &Settings) -> DateTime<Utc> {
    let zone = zone(settings);
    let start = unit.shipped_at.unwrap_or(unit.order_created_at).with_timezone(&zone);
    let days = Days::new(u64::from(settings.return_window_days) + 1);
    let Some(day) = start.date_naive().checked_add_days(days) else {
        return DateTime::<Utc>::MAX_UTC;
    };
    let midnight = day.and_time(NaiveTime::MIN);
    // Some zones skip midnight when their clocks change: the day begins when the gap ends.
    let first = (0..=24)
        .filter_map(|quarters| midnight.checked_add_signed(TimeDelta::minutes(15 * quarters)))
        .find_map(|time| zone.from_local_datetime(&time).earliest());
    first.map_or_else(|| midnight.and_utc(), |time| time.to_utc())
}

/// Tags are compared without regard to case and surrounding spaces: senders differ.
fn forbids_return(tag: &str, settings: &Settings) -> bool {
    let own = settings.final_sale_tags.iter().map(String::as_str);
    let tag = tag.trim().to_lowercase();
    NON_RETURNABLE_TAGS.into_iter().chain(own).any(|it| it.trim().to_lowercase() == tag)
}

/// A zone that is not known, which settings do not allow, is read as UTC.
fn zone(settings: &Settings) -> Tz {
    settings.time_zone.parse().unwrap_or(Tz::UTC)
}

words!(IneligibleCode);
