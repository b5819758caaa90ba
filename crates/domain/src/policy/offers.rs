//! The choices that a shopper has for a unit, for the list of returnable units.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::{Choice, UnitDecision, UnitPolicy};
use crate::merchant::{Outcome, ReturnMethod, Rule, WITHDRAWAL};
use crate::returns::{Ineligible, IneligibleCode};

/// The choices that a shopper has for a unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Offers {
    /// Why the unit cannot be returned. `None` if one of the choices is possible.
    pub ineligible: Option<Ineligible>,
    /// The latest end over the choices.
    pub window_ends_at: DateTime<Utc>,
    /// Methods of the merchant with which no choice is possible, if another method is.
    pub unavailable_methods: Vec<UnavailableMethod>,
    pub exchange_offered: bool,
    /// Empty if the merchant has no rules.
    pub choices: Vec<ReasonChoices>,
}

/// A return method that is not possible for a unit, and why.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct UnavailableMethod {
    pub method: ReturnMethod,
    #[serde(flatten)]
    pub reason: Ineligible,
}

/// The choices with a reason.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReasonChoices {
    /// The codes of the reasons. Absent: every reason that no other entry has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub reasons: Vec<String>,
    pub options: Vec<ChoiceOption>,
}

/// The terms for a result and a method, if the unit is returned alone.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ChoiceOption {
    pub outcome: Outcome,
    pub method: ReturnMethod,
    /// Why this is not possible; absent if it is.
    #[schema(nullable = false)]
    pub ineligible: Option<Ineligible>,
    pub return_shipping_cost_cents: i64,
    /// The rule that caused the cost; absent for that of the merchant's settings.
    #[schema(nullable = false)]
    pub cost_rule: Option<String>,
    /// The sum of all units of a return up to which shoppers can keep this one: the amount of the rule, without the units
    /// of the order that the shopper keeps already. With units of other orders, those that the shopper keeps of them count
    /// too. Only with `customer-keep`.
    #[schema(nullable = false)]
    pub keep_up_to_cents: Option<i64>,
    /// The bonus for a gift card or a variant of another price, in per cent of the amount paid.
    #[schema(nullable = false)]
    pub bonus_percent: Option<i64>,
    /// Absent if no rule names a warehouse, and with `customer-keep`. Units that go to different warehouses need a return
    /// each.
    #[schema(nullable = false)]
    pub return_to: Option<ReturnTo>,
}

/// The warehouse to which a unit goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReturnTo {
    /// Our identifier of the warehouse of the merchant.
    #[schema(example = "reno")]
    pub warehouse: String,
    /// The rule that names it.
    #[schema(example = "outlet")]
    pub rule: String,
}

impl From<(&str, &Rule)> for ReturnTo {
    fn from((warehouse, rule): (&str, &Rule)) -> Self {
        Self { warehouse: warehouse.to_owned(), rule: rule.id.clone() }
    }
}

impl UnitPolicy<'_> {
    /// The choices that a shopper has for the unit. `has_variants`: whether there are variants to exchange it for.
    pub fn offers(&self, has_variants: bool) -> Offers {
        let has_rules = !self.at.settings.policy.rules.is_empty();
        let can_exchange = has_variants && !self.facts.is_order_exchanged;
        let reasons = self.reasons();
        let choices = reasons.iter().flat_map(|reason| {
            let outcomes = self.outcomes(reason, can_exchange);
            // Without rules a refund is possible for every unit that can be returned.
            let outcomes = outcomes.into_iter().filter(|it| has_rules || *it == Outcome::Refund);
            outcomes.map(|outcome| (reason, outcome)).collect::<Vec<_>>()
        });
        let methods = &self.at.settings.returns.methods;
        let decided: Vec<_> = choices
            .flat_map(|(reason, outcome)| {
                methods.iter().map(move |offer| (reason, outcome, offer.method))
            })
            .map(|(reason, outcome, method)| {
                let return_paid_cents = self.facts.paid_amount_cents + self.facts.order_kept_cents;
                let choice = Choice { reason: reason.code, method, outcome, return_paid_cents };
                DecidedChoice { reason, outcome, method, decision: self.decide(&choice) }
            })
            .collect();
        let is_possible = |it: &DecidedChoice<'_>| it.decision.refusal.is_none();
        let is_returnable = decided.iter().any(is_possible);
        let some_reason_offers = reasons.iter().any(|reason| reason.offers_exchange);
        Offers {
            ineligible: if is_returnable { None } else { refusal_of_all(&decided) },
            window_ends_at: window_ends_at(&decided),
            unavailable_methods: unavailable_methods(&decided, is_returnable),
            exchange_offered: if has_rules {
                decided.iter().any(|it| it.outcome == Outcome::Exchange && is_possible(it))
            } else {
                can_exchange && some_reason_offers
            },
            choices: if has_rules { self.by_reason(&reasons, &decided) } else { Vec::new() },
        }
    }

    /// The reasons that rules about this unit name, and one entry for all others.
    fn reasons(&self) -> Vec<Reason<'_>> {
        let named = self.rules.iter().flat_map(|it| it.rule.when.reasons.iter().flatten());
        let named: BTreeSet<_> = named.map(String::as_str).collect();
        let settings = self.at.settings;
        let is_named = |code: &str| named.contains(code);
        let (own, others): (Vec<_>, Vec<_>) =
            settings.returns.reasons.iter().partition(|reason| is_named(&reason.code));
        let own = own.into_iter().map(|reason| Reason {
            code: Some(&reason.code),
            offers_exchange: reason.offers_exchange,
        });
        let offers_withdrawal = settings.appearance.withdrawal;
        let withdrawal = Reason { code: Some(WITHDRAWAL), offers_exchange: false };
        let own = own.chain((offers_withdrawal && is_named(WITHDRAWAL)).then_some(withdrawal));
        let has_others = !others.is_empty() || (offers_withdrawal && !is_named(WITHDRAWAL));
        let offers_exchange = others.iter().any(|reason| reason.offers_exchange);
        let others = has_others.then_some(Reason { code: None, offers_exchange });
        others.into_iter().chain(own).collect()
    }

    fn outcomes(&self, reason: &Reason<'_>, can_exchange: bool) -> Vec<Outcome> {
        let has_gift_card = self.at.settings.returns.gift_card.is_some();
        let is_offered = |outcome: &Outcome| match outcome {
            Outcome::Refund => true,
            Outcome::Exchange => can_exchange && reason.offers_exchange,
            Outcome::GiftCard => has_gift_card && !self.facts.is_order_exchanged,
        };
        Outcome::ALL.into_iter().filter(is_offered).collect()
    }

    /// The choices by reason. Reasons with the same options share an entry.
    fn by_reason(
        &self,
        reasons: &[Reason<'_>],
        decided: &[DecidedChoice<'_>],
    ) -> Vec<ReasonChoices> {
        let mut by_reason = Vec::<ReasonChoices>::new();
        for reason in reasons {
            let own = decided.iter().filter(|it| it.reason.code == reason.code);
            let options: Vec<_> = own.map(|it| self.option(it)).collect();
            let code = reason.code.map(str::to_owned);
            match (by_reason.iter_mut().find(|it| it.options == options), code) {
                // The entry without reasons stands for all others.
                (Some(same), Some(code)) if !same.reasons.is_empty() => same.reasons.push(code),
                (Some(_), _) => {}
                (None, code) => {
                    by_reason.push(ReasonChoices { reasons: code.into_iter().collect(), options });
                }
            }
        }
        by_reason
    }

    fn option(
        &self,
        DecidedChoice { outcome, method, decision, .. }: &DecidedChoice<'_>,
    ) -> ChoiceOption {
        let is_free = self.at.settings.returns.free_exchange_shipping;
        let cost = decision.cost.unless_free(is_free && *outcome != Outcome::Refund);
        let left_to_keep = |cents: i64| (cents - self.facts.order_kept_cents).max(0);
        ChoiceOption {
            outcome: *outcome,
            method: *method,
            ineligible: decision.refusal.clone(),
            return_shipping_cost_cents: cost.cents,
            cost_rule: cost.rule.map(|rule| rule.id.clone()),
            keep_up_to_cents: decision.keep_up_to_cents.map(left_to_keep),
            bonus_percent: decision.bonus.map(|(percent, _)| percent),
            return_to: decision.return_to.map(ReturnTo::from),
        }
    }
}

/// A reason, or all reasons that no rule about the unit names.
#[derive(Debug)]
struct Reason<'a> {
    code: Option<&'a str>,
    offers_exchange: bool,
}

struct DecidedChoice<'a> {
    reason: &'a Reason<'a>,
    outcome: Outcome,
    method: ReturnMethod,
    decision: UnitDecision<'a>,
}

/// The refusal of a unit for which no choice is possible. One about the unit says more than one about a method.
fn refusal_of_all(decided: &[DecidedChoice<'_>]) -> Option<Ineligible> {
    let refusals = decided.iter().filter_map(|it| it.decision.refusal.as_ref());
    let first = refusals.min_by_key(|it| it.code.is_of_choice()).cloned();
    // Settings have a method, so there is a choice.
    let none = || Ineligible::new(IneligibleCode::MethodNotOffered, "no return method is offered");
    Some(first.unwrap_or_else(none))
}

fn window_ends_at(decided: &[DecidedChoice<'_>]) -> DateTime<Utc> {
    decided.iter().map(|it| it.decision.window_ends_at).max().unwrap_or_default()
}

/// Methods with which no choice is possible. If no method is possible, only those that are refused themselves.
fn unavailable_methods(
    decided: &[DecidedChoice<'_>],
    is_returnable: bool,
) -> Vec<UnavailableMethod> {
    let mut methods: Vec<_> = decided.iter().map(|it| it.method).collect();
    let mut seen = BTreeSet::new();
    methods.retain(|method| seen.insert(*method));
    let unavailable = |method: ReturnMethod| {
        let own = || decided.iter().filter(|it| it.method == method);
        if own().any(|it| it.decision.refusal.is_none()) {
            return None;
        }
        let refusals = own().filter_map(|it| it.decision.refusal.as_ref());
        let reason = refusals.min_by_key(|it| !it.code.is_of_choice())?;
        (is_returnable || reason.code.is_of_choice())
            .then(|| UnavailableMethod { method, reason: reason.clone() })
    };
    methods.into_iter().filter_map(unavailable).collect()
}
