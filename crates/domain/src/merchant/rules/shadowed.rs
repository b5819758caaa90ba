//! Finds rules that can never decide anything, because earlier rules always do.
//!
//! The test is safe and not complete: a rule that it finds has no effect, and it does not find every such rule.

use super::{Conditions, Cost, Effects, Rule, is_same_tag, matches_pattern};

impl Rule {
    /// The ids of the earlier rules that decide every effect of this rule whenever it matches, if they do.
    pub(super) fn shadowed_by(&self, earlier: &[Self], merchant_currency: &str) -> Option<String> {
        let covering: Vec<_> =
            earlier.iter().filter(|rule| rule.when.holds_with(&self.when)).collect();
        let mut deciding = Vec::new();
        for names in NAMED {
            if names(&self.then) {
                deciding.push(covering.iter().find(|rule| names(&rule.then))?.id.as_str());
            }
        }
        for cost in self.then.costs.iter().flatten() {
            let covers = |rule: &&&Self| {
                rule.then.costs.iter().flatten().any(|own| own.covers(cost, merchant_currency))
            };
            deciding.push(covering.iter().find(covers)?.id.as_str());
        }
        deciding.sort_unstable();
        deciding.dedup();
        Some(deciding.join(", "))
    }
}

/// Whether effects name an effect, for every effect but costs.
const NAMED: [fn(&Effects) -> bool; 8] = [
    |then| then.returnable.is_some(),
    |then| then.window.is_some(),
    |then| then.methods.is_some(),
    |then| then.outcomes.is_some(),
    |then| then.keep.is_some(),
    |then| then.gift_card_bonus_percent.is_some(),
    |then| then.exchange_bonus_percent.is_some(),
    |then| then.review.is_some(),
];

impl Cost {
    /// Whether this cost applies wherever the other does.
    fn covers(&self, other: &Self, merchant_currency: &str) -> bool {
        let code = |cost: &Self| match &cost.currency {
            None if cost.shipping_cost_cents == 0 => None,
            own => Some(own.as_deref().unwrap_or(merchant_currency).to_owned()),
        };
        let own = code(self);
        (self.method.is_none() || self.method == other.method)
            && (own.is_none() || own == code(other))
    }
}

impl Conditions {
    /// Whether these conditions hold whenever the others do.
    fn holds_with(&self, other: &Self) -> bool {
        let has_lists = implied(&self.line_tags, &other.line_tags, |a, b| is_same_tag(a, b))
            && implied(&self.order_tags, &other.order_tags, |a, b| is_same_tag(a, b))
            // A pattern that matches the other pattern as a text matches all that the other one does.
            && implied(&self.skus, &other.skus, |a, b| matches_pattern(a, b))
            && implied(&self.countries, &other.countries, PartialEq::eq)
            && implied(&self.reasons, &other.reasons, PartialEq::eq)
            && implied(&self.methods, &other.methods, PartialEq::eq)
            && implied(&self.outcomes, &other.outcomes, PartialEq::eq)
            && implied(&self.concepts, &other.concepts, PartialEq::eq)
            && implied(&self.shoppers, &other.shoppers, PartialEq::eq);
        let days = |own: Option<super::DayRange>, other: Option<super::DayRange>| {
            own.is_none_or(|own| {
                other.is_some_and(|it| contains((own.min, own.max), (it.min, it.max)))
            })
        };
        has_lists
            && days(self.days_since_order, other.days_since_order)
            && days(self.days_since_shipping, other.days_since_shipping)
            && days(self.days_since_delivery, other.days_since_delivery)
            && self.unit_price.as_ref().is_none_or(|own| {
                other.unit_price.as_ref().is_some_and(|it| {
                    own.currency == it.currency
                        && contains((own.min_cents, own.max_cents), (it.min_cents, it.max_cents))
                })
            })
            && self.weight.is_none_or(|own| {
                other.weight.is_some_and(|it| contains((own.min, own.max), (it.min, it.max)))
            })
            && self.ordered.is_none_or(|own| {
                other.ordered.is_some_and(|it| contains((own.from, own.until), (it.from, it.until)))
            })
            && self.returns_of_shopper.is_none_or(|own| {
                other.returns_of_shopper.is_some_and(|it| {
                    own.days == it.days && contains((own.min, own.max), (it.min, it.max))
                })
            })
    }
}

/// Whether one value of a list holds whenever one of the other list does.
fn implied<T>(own: &Option<Vec<T>>, other: &Option<Vec<T>>, covers: fn(&T, &T) -> bool) -> bool {
    let Some(own) = own else { return true };
    let is_covered = |value: &T| own.iter().any(|own| covers(own, value));
    other.as_ref().is_some_and(|other| other.iter().all(is_covered))
}

/// Whether a range contains the other one. An absent end is open.
fn contains<T: PartialOrd>(own: (Option<T>, Option<T>), other: (Option<T>, Option<T>)) -> bool {
    let min = own.0.is_none_or(|own| other.0.is_some_and(|other| own <= other));
    let max = own.1.is_none_or(|own| other.1.is_some_and(|other| own >= other));
    min && max
}
