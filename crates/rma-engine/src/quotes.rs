//! Quotes for returns. One function assesses quotes and new returns. A quote token contains the
//! terms that the shopper saw, so that a new return can be compared with them.

pub(crate) mod conflict;
pub(crate) mod terms;

use std::collections::BTreeSet;

use domain::access::MerchantId;
use domain::json::{FieldError, ValidationError};
use domain::merchant::{Merchant, Outcome, Rule};
use domain::policy::{PolicyAt, UnitRequest, decide_return};
use domain::returns::{
    Ineligible, IneligibleCode, RefundFinancials, RefundType, RequestedUnit, ReturnDestination,
    ReturnMethod, ReturnRequest, ReturnReview, RmaUnit, UnitId,
};
use platform::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use self::terms::{QuoteTerms, UnitTerms};
use crate::orders::units::{LoadedUnit, OrderUnits};

/// Costs, refunds and eligibility of a return at this moment.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Quote {
    /// Send this token with the return. The return is rejected if the terms have changed.
    quote: String,
    /// Whether every unit can be returned.
    possible: bool,
    return_method: ReturnMethod,
    return_shipping_cost_cents: i64,
    /// The rule that caused the cost; absent for that of the merchant's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cost_rule: Option<String>,
    /// The rule that lets the merchant look at the return before it starts; absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    review_rule: Option<String>,
    /// The warehouse to which the units go; absent if no rule names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    return_to: Option<ReturnDestination>,
    /// The sum over the units.
    estimated_refund_amount_cents: i64,
    /// The bonus of the merchant's settings: once for each order with a gift card for which no rule gives one.
    gift_card_bonus_amount_cents: i64,
    /// Money that the shopper gets back, before the return shipping cost.
    shopper_refund_amount_cents: i64,
    #[schema(example = "USD")]
    currency: String,
    units: Vec<QuotedUnit>,
}

/// A unit of a quote.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct QuotedUnit {
    #[serde(flatten)]
    requested: RequestedUnit,
    sku: String,
    title: String,
    refund_type: RefundType,
    refund_financials: RefundFinancials,
    /// The bonus for the chosen gift card or variant. Absent unless a rule of the merchant gives it. A variant of the same
    /// price has none, and that for another variant is at most its price.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    bonus_amount_cents: Option<i64>,
    returnable: bool,
    /// Why the unit cannot be returned; absent if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    ineligible: Option<Ineligible>,
    /// The policy reason that staff has overridden.
    #[serde(skip_serializing_if = "Option::is_none")]
    overridden: Option<IneligibleCode>,
    /// The rule that caused the reason that staff has overridden.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    overridden_rule: Option<String>,
}

/// A unit that cannot be returned.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct IneligibleUnit {
    #[serde(flatten)]
    id: UnitId,
    #[serde(flatten)]
    ineligible: Ineligible,
}

/// A request checked against its orders.
pub(crate) struct Assessment {
    pub(crate) units: Vec<AssessedUnit>,
    pub(crate) return_shipping_cost_cents: i64,
    pub(crate) cost_rule: Option<String>,
    /// The bonus of the merchant's settings for the gift card of an order.
    pub(crate) bonus_of_order_cents: i64,
    /// The review that a rule asks for.
    review: Option<ReturnReview>,
    /// The warehouse that a rule names.
    pub(crate) return_to: Option<ReturnDestination>,
    /// Whether staff decided in place of the policy.
    is_overridden: bool,
    return_method: ReturnMethod,
    pub(crate) currency: String,
    /// Whether the terms of the quote have no amounts, which a giftee must not see.
    is_for_giftee: bool,
}

pub(crate) struct AssessedUnit {
    requested: RequestedUnit,
    title: String,
    pub(crate) unit: RmaUnit,
    /// The reason that staff overrode, if there was one, or the reason why the unit cannot be returned.
    pub(crate) eligibility: Result<Option<Ineligible>, Ineligible>,
}

/// Why a request cannot be assessed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssessmentError {
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    /// Auth keeps a warehouse with its address as long as a rule names it.
    #[error(
        "warehouse {warehouse} of merchant {merchant}, which rule {rule} names, has no address"
    )]
    NoAddress { merchant: MerchantId, warehouse: String, rule: String },
}

/// Checks a request against its orders. Unknown orders, lines and units are validation errors.
pub(crate) fn assess<'a>(
    order_units: &'a OrderUnits,
    request: &'a ReturnRequest,
    merchant: &'a Merchant,
    now: Timestamp,
) -> Result<Assessment, AssessmentError> {
    let mut errors = Vec::new();
    let mut found = Vec::new();
    for (index, requested) in request.units.iter().enumerate() {
        match order_units.unit(&requested.id) {
            Some(unit) => found.push((index, requested, unit)),
            None => errors.push(no_such_unit(order_units, index, requested)),
        }
    }
    errors.extend(found.iter().filter_map(|(index, _, unit)| mismatch(*index, unit, &found)));
    errors
        .extend(request.exchange_errors(|id| order_units.unit(id).map(|unit| unit.has_variants())));
    if !errors.is_empty() {
        return Err(ValidationError { errors, omitted: 0 }.into());
    }
    let currency = found.first().map(|(_, _, unit)| unit.projected.order.currency);
    let currency = currency.map_or_else(String::new, |it| it.code().to_owned());
    let returns = merchant.settings.returns_in(&currency);
    let bonus_of_order_cents =
        returns.gift_card.as_ref().map_or(0, |card| card.bonus_credit_amount_cents);
    let unit_request = |(_, requested, unit): &(usize, &'a RequestedUnit, LoadedUnit<'a>)| {
        let outcome = Outcome::from(&requested.resolution);
        UnitRequest { facts: unit.facts(), reason: &requested.return_reason, outcome }
    };
    let unit_requests: Vec<_> = found.iter().map(unit_request).collect();
    let policy = PolicyAt::new(&merchant.settings, now);
    let staff = request.staff_override.as_ref();
    let is_gift = request.giftee_email.is_some();
    let decision = decide_return(&policy, request.return_method, &unit_requests, staff);
    let units =
        found.iter().zip(decision.units).map(|((_, requested, unit), decided)| AssessedUnit {
            requested: (*requested).clone(),
            title: unit.line.title.clone(),
            unit: RmaUnit::new(requested, unit.purchased())
                .with_bonus(decided.decision.bonus.map(|(percent, _)| percent), is_gift),
            eligibility: decided.eligibility,
        });
    let units: Vec<_> = units.collect();
    let return_to = decision.return_to.map(|to| destination(to, merchant)).transpose()?;
    Ok(Assessment {
        return_shipping_cost_cents: decision.cost.cents,
        cost_rule: decision.cost.rule.map(|rule| rule.id.clone()),
        bonus_of_order_cents,
        review: decision
            .review
            .map(|(terms, rule)| ReturnReview::new(terms, &rule.id, now, &merchant.settings)),
        return_to,
        is_overridden: staff.is_some(),
        return_method: request.return_method,
        currency,
        units,
        is_for_giftee: false,
    })
}

/// The warehouse that a rule names.
fn destination(
    (warehouse, rule): (&str, &Rule),
    merchant: &Merchant,
) -> Result<ReturnDestination, AssessmentError> {
    let no_address = || AssessmentError::NoAddress {
        merchant: merchant.identifier.clone(),
        warehouse: warehouse.to_owned(),
        rule: rule.id.clone(),
    };
    ReturnDestination::new((warehouse, rule), &merchant.warehouses).ok_or_else(no_address)
}

/// The error of a requested unit that does not exist: its order, its line or its number is wrong.
fn no_such_unit(order_units: &OrderUnits, index: usize, requested: &RequestedUnit) -> FieldError {
    let field = |name: &str| format!("$.units[{index}].{name}");
    let id = &requested.id;
    match order_units.orders.get(&id.order_identifier) {
        None => FieldError::invalid(field("order_identifier"), "there is no such order"),
        Some(it)
            if it.order.items.iter().all(|it| it.identifier != id.order_line_item_identifier) =>
        {
            let detail = "names no line of this order";
            FieldError::invalid(field("order_line_item_identifier"), detail)
        }
        Some(_) => FieldError::invalid(field("unit"), "the line has no such unit"),
    }
}

/// An error if the unit's order has another shopper or currency than the first unit's order.
fn mismatch(
    index: usize,
    unit: &LoadedUnit<'_>,
    found: &[(usize, &RequestedUnit, LoadedUnit<'_>)],
) -> Option<FieldError> {
    let order = &unit.projected.order;
    let first = &found.first()?.2.projected.order;
    let field = format!("$.units[{index}].order_identifier");
    if order.customer.identifier != first.customer.identifier {
        return Some(FieldError::invalid(field, "the order is another shopper's"));
    }
    if order.currency != first.currency {
        return Some(FieldError::invalid(field, "the order is in another currency"));
    }
    None
}

impl Assessment {
    pub(crate) fn for_giftee(self, is_for_giftee: bool) -> Self {
        Self { is_for_giftee, ..self }
    }

    /// The review that the return waits for. Staff who override the policy have decided already.
    pub(crate) fn review(&self) -> Option<&ReturnReview> {
        self.review.as_ref().filter(|_| !self.is_overridden)
    }

    /// The review that staff overrode.
    pub(crate) fn overridden_review(&self) -> Option<&ReturnReview> {
        self.review.as_ref().filter(|_| self.is_overridden)
    }

    pub(crate) fn ineligible(&self) -> Vec<IneligibleUnit> {
        let refused = |it: &AssessedUnit| {
            let ineligible = it.eligibility.clone().err()?;
            Some(IneligibleUnit { id: it.unit.id.clone(), ineligible })
        };
        self.units.iter().filter_map(refused).collect()
    }

    pub(crate) fn quote(&self) -> Quote {
        let sum = |amount: fn(RefundFinancials) -> i64| {
            self.units.iter().map(|it| amount(it.unit.refund_financials())).sum()
        };
        Quote {
            quote: self.terms().to_token(),
            possible: self.units.iter().all(|it| it.eligibility.is_ok()),
            return_method: self.return_method,
            return_shipping_cost_cents: self.return_shipping_cost_cents,
            cost_rule: self.cost_rule.clone(),
            review_rule: self.review().map(|review| review.rule.clone()),
            return_to: self.return_to.clone(),
            estimated_refund_amount_cents: sum(|it| it.estimated_refund_amount_cents),
            gift_card_bonus_amount_cents: self.gift_card_bonus_amount_cents(),
            shopper_refund_amount_cents: sum(|it| it.shopper_refund_amount_cents),
            currency: self.currency.clone(),
            units: self.units.iter().map(AssessedUnit::quoted).collect(),
        }
    }

    /// The bonus of the merchant's settings for the gift cards of all orders.
    fn gift_card_bonus_amount_cents(&self) -> i64 {
        let units = self.units.iter().map(|it| &it.unit).filter(|it| it.has_bonus_of_settings());
        let orders: BTreeSet<_> = units.map(|unit| unit.id.order_identifier.as_str()).collect();
        orders.iter().map(|_| self.bonus_of_order_cents).sum()
    }

    pub(crate) fn terms(&self) -> QuoteTerms {
        let shown = |cents: i64| if self.is_for_giftee { 0 } else { cents };
        let unit = |it: &AssessedUnit| UnitTerms {
            id: it.unit.id.clone(),
            refund_type: it.unit.refund_type,
            refund_amount_cents: shown(it.unit.refund_financials().estimated_refund_amount_cents),
            bonus_amount_cents: shown(it.unit.bonus_amount_cents.unwrap_or_default()),
            ineligible: it.eligibility.as_ref().err().map(|it| it.code),
        };
        QuoteTerms {
            return_shipping_cost_cents: shown(self.return_shipping_cost_cents),
            gift_card_bonus_amount_cents: Some(shown(self.gift_card_bonus_amount_cents())),
            units: self.units.iter().map(unit).collect(),
        }
    }
}

impl AssessedUnit {
    fn quoted(&self) -> QuotedUnit {
        let overridden = self.eligibility.clone().ok().flatten();
        QuotedUnit {
            requested: self.requested.clone(),
            sku: self.unit.sku.clone(),
            title: self.title.clone(),
            refund_type: self.unit.refund_type,
            refund_financials: self.unit.refund_financials(),
            bonus_amount_cents: self.unit.bonus_amount_cents,
            returnable: self.eligibility.is_ok(),
            ineligible: self.eligibility.clone().err(),
            overridden: overridden.as_ref().map(|it| it.code),
            overridden_rule: overridden.and_then(|it| it.rule),
        }
    }
}
