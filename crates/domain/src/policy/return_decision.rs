//! The decision about a whole return, for quotes and new returns.

use std::collections::BTreeMap;

use super::{Choice, LinePolicies, PolicyAt, ReturnCost, UnitDecision, UnitFacts};
use crate::merchant::{Outcome, ReturnMethod, ReviewTerms, Rule};
use crate::returns::{Ineligible, StaffOverride};

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
}

/// The terms of a unit of a return.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedUnit<'a> {
    /// The reason that staff overrode, if there was one, or the reason why the unit cannot be returned.
    pub eligibility: Result<Option<Ineligible>, Ineligible>,
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
    let decided: Vec<_> = units.iter().map(decide).collect();
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
        units: decided,
    }
}

impl ReturnCost<'_> {
    /// The cost of a return in which every unit is exchanged, if that is free by the settings. Rules come before the
    /// settings.
    pub(super) fn unless_free(self, is_free: bool) -> Self {
        if is_free && self.rule.is_none() { Self { cents: 0, ..self } } else { self }
    }
}
