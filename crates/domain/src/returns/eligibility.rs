//! Eligibility of a unit for a return. The list of returnable units and the creation of a return
//! use the same function.
//!
//! Facts are checked before the merchant's policy, so a code that staff can override is reported
//! only when nothing else prevents the return.
//!
//! See docs/decisions/return-eligibility.md.

use chrono::{DateTime, Days, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::merchant::{ReturnMethod, Settings};
use crate::order::OrderStatus;

/// Line tags that exclude a unit from returns for every merchant.
const NON_RETURNABLE_TAGS: [&str; 3] = ["FinalSale", "gift-card", "Thirdparty"];

/// RFC 3339 has no later second: years have four digits.
const LATEST_END: DateTime<Utc> = DateTime::from_timestamp(253_402_300_799, 0).unwrap();

/// The facts that decide whether a unit can be returned.
#[derive(Debug, Clone, Copy)]
pub struct UnitFacts<'a> {
    pub order_status: OrderStatus,
    pub order_created_at: DateTime<Utc>,
    pub is_shipped: bool,
    pub shipped_at: Option<DateTime<Utc>>,
    pub line_tags: &'a [String],
    /// The return that contains the unit, unless that return was canceled.
    pub rma_identifier: Option<&'a str>,
    pub is_refunded: bool,
    /// Whether the shopper wants an exchange and the order cannot have another one.
    pub is_second_exchange: bool,
    /// The method that the shopper wants, if it is known.
    pub return_method: Option<ReturnMethod>,
    /// The weight on the order line.
    pub weight: Option<f64>,
}

crate::words! {
    /// Why a unit cannot be returned.
    pub enum IneligibleCode as "snake_case" {
        OrderCancelled,
        NotShipped,
        AlreadyReturned,
        AlreadyRefunded,
        /// The order cannot have another exchange. The unit can be returned for a refund.
        AlreadyExchanged,
        /// The unit is too heavy for express-returns. It can be returned with another method.
        TooHeavyForExpress,
        FinalSale,
        WindowExpired,
    }
}

impl IneligibleCode {
    /// Whether staff can override the reason: policy reasons yes, facts no.
    pub fn is_overridable(self) -> bool {
        matches!(self, Self::FinalSale | Self::WindowExpired)
    }
}

/// The reason why a unit cannot be returned, as a code and as a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{detail}")]
pub struct Ineligible {
    pub code: IneligibleCode,
    pub detail: String,
}

/// The staff member who allows a return against the merchant's policy, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StaffOverride {
    #[schema(min_length = 1, max_length = 255)]
    pub by: String,
    #[schema(min_length = 1, max_length = 1000)]
    pub reason: String,
}

/// Decides whether the unit can be returned at `now`. Returns the policy reason that `staff`
/// overrides, if any, so that the caller can record it.
pub fn check_eligibility(
    unit: &UnitFacts<'_>,
    settings: &Settings,
    now: DateTime<Utc>,
    staff: Option<&StaffOverride>,
) -> Result<Option<IneligibleCode>, Ineligible> {
    match check(unit, settings, now) {
        Ok(()) => Ok(None),
        Err(found) if staff.is_some() && found.code.is_overridable() => Ok(Some(found.code)),
        Err(found) => Err(found),
    }
}

fn check(unit: &UnitFacts<'_>, settings: &Settings, now: DateTime<Utc>) -> Result<(), Ineligible> {
    use IneligibleCode::{
        AlreadyExchanged, AlreadyRefunded, AlreadyReturned, FinalSale, NotShipped, OrderCancelled,
        WindowExpired,
    };
    let ineligible = |code, detail| Err(Ineligible { code, detail });
    if unit.order_status == OrderStatus::Cancelled {
        return ineligible(OrderCancelled, "the order was cancelled".to_owned());
    }
    if !unit.is_shipped {
        return ineligible(NotShipped, "the unit has not shipped".to_owned());
    }
    if let Some(rma) = unit.rma_identifier {
        return ineligible(AlreadyReturned, format!("the unit is already in return {rma}"));
    }
    if unit.is_refunded {
        return ineligible(AlreadyRefunded, "the unit was already refunded".to_owned());
    }
    if unit.is_second_exchange {
        let detail = "an exchange was already made against the order: choose a refund";
        return ineligible(AlreadyExchanged, detail.to_owned());
    }
    if let Some(method) = unit.return_method {
        check_method(unit, method, settings)?;
    }
    if let Some(tag) = unit.line_tags.iter().find(|tag| is_non_returnable(tag, settings)) {
        return ineligible(FinalSale, format!("items tagged {tag} cannot be returned"));
    }
    let ends_at = window_ends_at(unit, settings);
    if now >= ends_at {
        let last_day = (ends_at - TimeDelta::seconds(1)).with_timezone(&time_zone(settings));
        let last_day = last_day.format("%-d %B %Y");
        return ineligible(WindowExpired, format!("the unit could be returned until {last_day}"));
    }
    Ok(())
}

/// Checks only whether the method is possible for the unit. A unit of unknown weight can be
/// returned with every method.
pub fn check_method(
    unit: &UnitFacts<'_>,
    method: ReturnMethod,
    settings: &Settings,
) -> Result<(), Ineligible> {
    let limit = settings.express_max_weight.filter(|_| method == ReturnMethod::ExpressReturns);
    match (unit.weight, limit) {
        (Some(weight), Some(limit)) if weight > limit => Err(Ineligible {
            code: IneligibleCode::TooHeavyForExpress,
            detail: format!("the unit is heavier than {limit}: choose another return method"),
        }),
        _ => Ok(()),
    }
}

/// The end of the return window: midnight in the merchant's time zone after the last day. The
/// window starts on the day of shipping, or on the day of the order if that day is unknown. It ends in the
/// year 9999 at the latest.
pub fn window_ends_at(unit: &UnitFacts<'_>, settings: &Settings) -> DateTime<Utc> {
    let start = unit.shipped_at.unwrap_or(unit.order_created_at);
    end_of_day(start, settings.return_window_days, settings)
}

/// The end of the day that is this many days after a time, in the merchant's time zone. In the year 9999 at the
/// latest.
pub(super) fn end_of_day(start: DateTime<Utc>, days: u16, settings: &Settings) -> DateTime<Utc> {
    let zone = time_zone(settings);
    let days = Days::new(u64::from(days) + 1);
    let Some(day) = start.with_timezone(&zone).date_naive().checked_add_days(days) else {
        return LATEST_END;
    };
    let midnight = day.and_time(NaiveTime::MIN);
    // Some zones skip midnight when their clocks change; the day then starts after the gap.
    let first = (0..=24)
        .filter_map(|quarters| midnight.checked_add_signed(TimeDelta::minutes(15 * quarters)))
        .find_map(|time| zone.from_local_datetime(&time).earliest());
    first.map_or_else(|| midnight.and_utc(), |time| time.to_utc()).min(LATEST_END)
}

/// Compares tags without case and surrounding spaces, because merchants spell them differently.
fn is_non_returnable(tag: &str, settings: &Settings) -> bool {
    let own = settings.final_sale_tags.iter().map(String::as_str);
    let tag = tag.trim().to_lowercase();
    NON_RETURNABLE_TAGS.into_iter().chain(own).any(|it| it.trim().to_lowercase() == tag)
}

/// Validation of settings rejects unknown time zones, so the fallback is never used.
fn time_zone(settings: &Settings) -> Tz {
    settings.time_zone.parse().unwrap_or(Tz::UTC)
}
