//! The decision about a whole return, for quotes and new returns.
//!
//! One warehouse receives a return, and a receipt that closes it is about all of its units. So units that go to different
//! warehouses need a return each. Withdrawals from the contract, which a refusal must not stop, and returns for which staff
//! override the policy go where their first unit goes.

use std::collections::BTreeMap;

use super::{Choice, LinePolicies, PolicyAt, ReturnCost, UnitDecision, UnitFacts};
use crate::merchant::{Outcome, ReturnMethod, ReviewTerms, Rule, WITHDRAWAL};
use crate::returns::{Ineligible, IneligibleCode, StaffOverride};

/// A unit that a shopper wants to return.
#[derive(Debug, Clone, Copy)]
pub struct UnitRequest<'a> {
    pub facts: UnitFacts<'a>,
    /// The code of the reason.
    pub reason: &'a str,
    pub outcome: Outcome,
}

/// The terms of a return.
#[derive(Debug, Clone, PartialEq)]
pub struct ReturnDecision<'a> {
    /// In the order of the request.
    pub units: Vec<DecidedUnit<'a>>,
    /// The highest cost of a unit.
    pub cost: ReturnCost<'a>,
    /// The review that the return needs, and the first rule that asks for it for a unit.
    pub review: Option<(ReviewTerms, &'a Rule)>,
    /// The warehouse to which the units go, and the rule that names it for the first unit that can be returned. `None` if
    /// no rule does, or if the shopper keeps the units.
    pub return_to: Option<(&'a str, &'a Rule)>,
}

/// The terms of a unit of a return.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedUnit<'a> {
    /// The reason that staff overrode, if there was one, or the reason why the unit cannot be returned.
    pub eligibility: Result<Option<Ineligible>, Ineligible>,
    /// As if the unit were returned alone, apart from amounts that count for the whole return.
    pub decision: UnitDecision<'a>,
}

/// Decides about a return. `staff` overrides refusals by policy.
pub fn decide_return<'a>(
    policy: &PolicyAt<'a>,
    method: ReturnMethod,
    units: &[UnitRequest<'a>],
    staff: Option<&StaffOverride>,
) -> ReturnDecision<'a> {
    let kept = units
        .iter()
        .map(|UnitRequest { facts, .. }| (facts.order.identifier.as_str(), facts.order_kept_cents));
    let kept_by_order: BTreeMap<_, _> = kept.collect();
    let paid = units.iter().map(|unit| unit.facts.paid_amount_cents);
    let return_paid_cents: i64 = paid.chain(kept_by_order.into_values()).sum();
    let mut policies = LinePolicies::new(policy.clone());
    let decide = |unit: &UnitRequest<'a>| {
        let UnitRequest { facts, reason, outcome } = *unit;
        let choice = Choice { reason: Some(reason), method, outcome, return_paid_cents };
        let decision = policies.unit(facts).decide(&choice);
        let eligibility = match &decision.refusal {
            None => Ok(None),
            Some(refusal) if staff.is_some() && refusal.code.is_overridable() => {
                Ok(Some(refusal.clone()))
            }
            Some(refusal) => Err(refusal.clone()),
        };
        DecidedUnit { eligibility, decision }
    };
    let mut decided: Vec<_> = units.iter().map(decide).collect();
    let first = decided.iter().find(|unit| unit.eligibility.is_ok());
    let return_to = first.and_then(|unit| unit.decision.return_to);
    let is_withdrawal = units.iter().all(|unit| unit.reason == WITHDRAWAL);
    if !is_withdrawal {
        refuse_other_warehouses(&mut decided, return_to, staff.is_some());
    }
    let is_exchanged = units.iter().all(|unit| unit.outcome != Outcome::Refund);
    let is_free = is_exchanged && policy.settings.returns.free_exchange_shipping;
    let highest = |highest: ReturnCost<'a>, unit: &DecidedUnit<'a>| {
        let cost = unit.decision.cost.unless_free(is_free);
        if highest.cents < cost.cents || highest.rule.is_none() && highest.cents == cost.cents {
            cost
        } else {
            highest
        }
    };
    let none = ReturnCost { cents: 0, rule: None };
    let place = |rule: &Rule| policy.settings.policy.rules.iter().position(|it| it.id == rule.id);
    let reviews = decided.iter().filter_map(|unit| unit.decision.review);
    ReturnDecision {
        cost: decided.iter().fold(none, highest),
        review: reviews.min_by_key(|(_, rule)| place(rule)),
        return_to,
        units: decided,
    }
}

/// Refuses units that do not go where the return goes. Units without a warehouse go where the merchant usually receives
/// units, which is another place.
fn refuse_other_warehouses<'a>(
    decided: &mut [DecidedUnit<'a>],
    return_to: Option<(&'a str, &'a Rule)>,
    is_overridden: bool,
) {
    let warehouse = return_to.map(|(warehouse, _)| warehouse);
    for DecidedUnit { eligibility, decision } in decided {
        let is_elsewhere = decision.return_to.map(|(own, _)| own) != warehouse;
        if !is_elsewhere || *eligibility != Ok(None) {
            continue;
        }
        let detail = "the unit goes to another warehouse than the first one: return it separately";
        let refusal = Ineligible::new(IneligibleCode::OtherWarehouse, detail);
        // One of the two places is that of a rule.
        let refusal = match decision.return_to.or(return_to) {
            Some((_, rule)) => refusal.by(rule),
            None => refusal,
        };
        *eligibility = if is_overridden { Ok(Some(refusal)) } else { Err(refusal) };
    }
}

impl ReturnCost<'_> {
    /// The cost of a return in which every unit is exchanged, if that is free by the settings. Rules come before the
    /// settings.
    pub(super) fn unless_free(self, is_free: bool) -> Self {
        if is_free && self.rule.is_none() { Self { cents: 0, ..self } } else { self }
    }
}
