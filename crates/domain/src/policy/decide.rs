//! The decision about one unit and one choice.

use chrono::{DateTime, Utc};

use super::matching::{fits, is_set};
use super::{Choice, PlacedRule, UnitPolicy};
use crate::merchant::{Keep, Outcome, ReturnMethod, ReviewTerms, Rule, Window};
use crate::order::OrderStatus;
use crate::returns::{Ineligible, IneligibleCode};

/// Line tags that exclude a unit from returns for every merchant.
pub const NON_RETURNABLE_TAGS: [&str; 3] = ["FinalSale", "gift-card", "Thirdparty"];

/// The terms of a unit under a choice.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitDecision<'a> {
    /// Why the unit cannot be returned with this choice. Facts come first.
    pub refusal: Option<Ineligible>,
    pub window_ends_at: DateTime<Utc>,
    /// The cost of a return of this unit alone, unless `is_settings_cost` and every unit is exchanged.
    pub cost: ReturnCost<'a>,
    /// The amount up to which a rule lets shoppers keep units of an order, if the choice is to keep them.
    pub keep_up_to_cents: Option<i64>,
    /// The bonus of the chosen gift card or variant, in per cent of the amount paid, and the rule that gives it.
    pub bonus: Option<(i64, &'a Rule)>,
    /// The review that the return needs, and the rule that asks for it.
    pub review: Option<(ReviewTerms, &'a Rule)>,
    /// The warehouse to which the unit goes, and the rule that names it. `None` if no rule does, or if the shopper keeps
    /// the unit.
    pub return_to: Option<(&'a str, &'a Rule)>,
}

/// The return shipping cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReturnCost<'a> {
    pub cents: i64,
    /// `None`: the merchant's settings.
    pub rule: Option<&'a Rule>,
}

/// The rule that decides each effect; `None`: the merchant's other settings.
#[derive(Debug, Default)]
struct Deciding<'a> {
    returnable: Option<&'a Rule>,
    window: Option<&'a Rule>,
    cost: Option<ReturnCost<'a>>,
    methods: Option<&'a Rule>,
    outcomes: Option<&'a Rule>,
    keep: Option<&'a Rule>,
    gift_card_bonus: Option<&'a Rule>,
    exchange_bonus: Option<&'a Rule>,
    review: Option<&'a Rule>,
    return_to: Option<&'a Rule>,
}

impl<'a> UnitPolicy<'a> {
    /// Decides about a unit and a choice.
    pub fn decide(&self, choice: &Choice<'_>) -> UnitDecision<'a> {
        let deciding = self.deciding(choice);
        let settings = self.at.settings;
        let plain = Window { days: Some(settings.return_window_days), from: None, until: None };
        let window = deciding.window.and_then(|rule| rule.then.window).unwrap_or(plain);
        let window_ends_at = self.at.window_ends_at(&window, &self.facts);
        let bonus = match choice.outcome {
            Outcome::Refund => None,
            Outcome::GiftCard => {
                with(deciding.gift_card_bonus, |it| it.then.gift_card_bonus_percent)
            }
            Outcome::Exchange => with(deciding.exchange_bonus, |it| it.then.exchange_bonus_percent),
        };
        UnitDecision {
            refusal: self.refusal(choice, &deciding, window_ends_at),
            window_ends_at,
            cost: self.cost(choice, &deciding),
            keep_up_to_cents: deciding
                .keep
                .and_then(|rule| rule.then.keep.as_ref())
                .filter(|_| choice.method == ReturnMethod::CustomerKeep)
                .map(|keep| keep.up_to_cents),
            bonus,
            review: with(deciding.review, |rule| rule.then.review?.terms()),
            return_to: with(deciding.return_to, |rule| rule.then.return_to.as_deref())
                .filter(|_| choice.method != ReturnMethod::CustomerKeep),
        }
    }

    /// Finds, for each effect, the first rule that matches and names it.
    fn deciding(&self, choice: &Choice<'_>) -> Deciding<'a> {
        let mut deciding = Deciding::default();
        let is_for_reason = self.at.prepared.reasons.holds(choice.reason);
        let matching = self
            .rules
            .iter()
            .filter(|it| is_set(&is_for_reason, it.place) && fits(&it.rule.when, choice));
        for placed in matching {
            let rule = placed.rule;
            let then = &rule.then;
            if deciding.cost.is_none() {
                deciding.cost = placed.cost(choice.method);
            }
            let effects = [
                (&mut deciding.returnable, then.returnable.is_some()),
                (&mut deciding.window, then.window.is_some()),
                (&mut deciding.methods, then.methods.is_some()),
                (&mut deciding.outcomes, then.outcomes.is_some()),
                (&mut deciding.keep, then.keep.is_some()),
                (&mut deciding.gift_card_bonus, then.gift_card_bonus_percent.is_some()),
                (&mut deciding.exchange_bonus, then.exchange_bonus_percent.is_some()),
                (&mut deciding.review, then.review.is_some()),
                (&mut deciding.return_to, then.return_to.is_some()),
            ];
            for (decided, is_named) in effects {
                if is_named {
                    decided.get_or_insert(rule);
                }
            }
        }
        deciding
    }

    fn refusal(
        &self,
        choice: &Choice<'_>,
        deciding: &Deciding<'a>,
        window_ends_at: DateTime<Utc>,
    ) -> Option<Ineligible> {
        self.refusal_by_fact(choice.outcome)
            .or_else(|| self.refusal_by_weight(choice.method))
            .or_else(|| self.refusal_of_unit(deciding, window_ends_at))
            .or_else(|| refusal_of_outcome(choice, deciding))
            .or_else(|| self.refusal_of_method(choice, deciding))
    }

    /// Facts, which nobody can override.
    pub(super) fn refusal_by_fact(&self, outcome: Outcome) -> Option<Ineligible> {
        let unit = &self.facts;
        if unit.order.status == OrderStatus::Cancelled {
            return refuse(IneligibleCode::OrderCancelled, "the order was cancelled");
        }
        if !unit.is_shipped {
            return refuse(IneligibleCode::NotShipped, "the unit has not shipped");
        }
        if let Some(rma) = unit.rma_identifier {
            let detail = format!("the unit is already in return {rma}");
            return refuse(IneligibleCode::AlreadyReturned, detail);
        }
        if unit.is_refunded {
            return refuse(IneligibleCode::AlreadyRefunded, "the unit was already refunded");
        }
        if unit.is_order_exchanged && outcome != Outcome::Refund {
            let detail = "an exchange was already made against the order: choose a refund";
            return refuse(IneligibleCode::AlreadyExchanged, detail);
        }
        None
    }

    /// A unit of unknown weight can be returned with every method.
    pub(super) fn refusal_by_weight(&self, method: ReturnMethod) -> Option<Ineligible> {
        let limit = self.at.settings.express_max_weight;
        let limit = limit.filter(|_| method == ReturnMethod::ExpressReturns)?;
        (self.facts.line.weight? > limit).then(|| {
            let detail = format!("the unit is heavier than {limit}: choose another return method");
            Ineligible::new(IneligibleCode::TooHeavyForExpress, detail)
        })
    }

    fn refusal_of_unit(
        &self,
        deciding: &Deciding<'a>,
        window_ends_at: DateTime<Utc>,
    ) -> Option<Ineligible> {
        match deciding.returnable {
            Some(rule) if rule.then.returnable == Some(false) => {
                return refuse_by(
                    rule,
                    IneligibleCode::NotReturnable,
                    "the unit cannot be returned",
                );
            }
            Some(_) => {}
            None => {
                if let Some(tag) = self.final_sale_tag {
                    let detail = format!("items tagged {tag} cannot be returned");
                    return refuse(IneligibleCode::FinalSale, detail);
                }
            }
        }
        (self.at.now >= window_ends_at).then(|| {
            let last_day = self.at.last_day(window_ends_at);
            let detail = format!("the unit could be returned until {last_day}");
            let expired = Ineligible::new(IneligibleCode::WindowExpired, detail);
            match deciding.window {
                Some(rule) => expired.by(rule),
                None => expired,
            }
        })
    }

    pub(super) fn refusal_of_method_setting(&self, method: ReturnMethod) -> Option<Ineligible> {
        let mut offered = self.at.settings.returns.methods.iter();
        let is_offered = offered.any(|offer| offer.method == method);
        let detail = || format!("the return method {method} is not offered");
        (!is_offered).then(|| Ineligible::new(IneligibleCode::MethodNotOffered, detail()))
    }

    fn refusal_of_method(
        &self,
        choice: &Choice<'_>,
        deciding: &Deciding<'a>,
    ) -> Option<Ineligible> {
        let method = choice.method;
        let by_rule = with(deciding.methods, |rule| rule.then.methods.as_ref());
        if let Some((_, rule)) = by_rule.filter(|(methods, _)| !methods.contains(&method)) {
            let detail = format!("the return method {method} is not offered for this unit");
            return refuse_by(rule, IneligibleCode::MethodNotOffered, detail);
        }
        if method == ReturnMethod::CustomerKeep {
            return self.refusal_of_keep(choice.return_paid_cents, deciding.keep);
        }
        self.refusal_of_method_setting(method)
    }

    /// Shoppers can keep units only up to the amount of a rule.
    fn refusal_of_keep(&self, paid_cents: i64, rule: Option<&Rule>) -> Option<Ineligible> {
        if let Some(refusal) = self.refusal_of_method_setting(ReturnMethod::CustomerKeep) {
            return Some(refusal);
        }
        let Some((keep, rule)) = with(rule, |rule| rule.then.keep.as_ref()) else {
            let detail = "no rule allows shoppers to keep this unit";
            return refuse(IneligibleCode::KeepNotAllowed, detail);
        };
        let Keep { up_to_cents, currency } = keep;
        let currency = currency.as_ref().unwrap_or(&self.at.settings.currency);
        if self.facts.order.currency.code() != currency {
            let detail = "units of an order in this currency cannot be kept";
            return refuse_by(rule, IneligibleCode::KeepNotAllowed, detail);
        }
        if paid_cents <= *up_to_cents {
            return None;
        }
        let detail = "the units that the shopper would keep of the order cost too much together";
        refuse_by(rule, IneligibleCode::KeepNotAllowed, detail)
    }

    fn cost(&self, choice: &Choice<'_>, deciding: &Deciding<'a>) -> ReturnCost<'a> {
        deciding.cost.unwrap_or_else(|| {
            let settings = self.at.settings;
            let mut offers = settings.returns.methods.iter();
            let offer = offers.find(|offer| offer.method == choice.method);
            // Costs in another currency are zero, because there are no exchange rates.
            let offer = offer.filter(|_| self.facts.order.currency.code() == settings.currency);
            ReturnCost { cents: offer.map_or(0, |offer| offer.shipping_cost_cents), rule: None }
        })
    }
}

impl<'a> PlacedRule<'a> {
    /// The cost that the rule names for a method.
    fn cost(&self, method: ReturnMethod) -> Option<ReturnCost<'a>> {
        let mut costs = ReturnMethod::ALL.iter().zip(self.costs);
        let (_, cents) = costs.find(|(own, _)| **own == method)?;
        Some(ReturnCost { cents: cents?, rule: Some(self.rule) })
    }
}

fn refusal_of_outcome(choice: &Choice<'_>, deciding: &Deciding<'_>) -> Option<Ineligible> {
    let (outcomes, rule) = with(deciding.outcomes, |rule| rule.then.outcomes.as_ref())?;
    if outcomes.contains(&choice.outcome) {
        return None;
    }
    let detail = match choice.outcome {
        Outcome::Refund => "a refund is not offered for this unit",
        Outcome::Exchange => "an exchange is not offered for this unit",
        Outcome::GiftCard => "a gift card is not offered for this unit",
    };
    refuse_by(rule, IneligibleCode::OutcomeNotOffered, detail)
}

/// The effect of a deciding rule, with the rule.
fn with<'a, T>(
    rule: Option<&'a Rule>,
    effect: impl Fn(&'a Rule) -> Option<T>,
) -> Option<(T, &'a Rule)> {
    let rule = rule?;
    Some((effect(rule)?, rule))
}

fn refuse(code: IneligibleCode, detail: impl Into<String>) -> Option<Ineligible> {
    Some(Ineligible::new(code, detail))
}

fn refuse_by(rule: &Rule, code: IneligibleCode, detail: impl Into<String>) -> Option<Ineligible> {
    Some(Ineligible::new(code, detail).by(rule))
}
