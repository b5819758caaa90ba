//! Finds rules that can never decide anything, because earlier rules always do.
//!
//! The test is safe and not complete: a rule that it finds has no effect, and it does not find every such rule.

use std::collections::{BTreeSet, HashMap};

use super::{Conditions, Cost, DayRange, Effects, Outcome, Rule, matches_pattern, normalized_tag};
use crate::merchant::ReturnMethod;

/// A rule, prepared for comparisons with all others: values are numbers, which are the same for two spellings of a tag.
pub(super) struct ComparedRule<'a> {
    rule: &'a Rule,
    line_tags: Option<BTreeSet<usize>>,
    order_tags: Option<BTreeSet<usize>>,
    countries: Option<BTreeSet<usize>>,
    reasons: Option<BTreeSet<usize>>,
    methods: Option<BTreeSet<ReturnMethod>>,
    outcomes: Option<BTreeSet<Outcome>>,
    concepts: Option<BTreeSet<usize>>,
    shoppers: Option<BTreeSet<usize>>,
    costs: BTreeSet<CostKey<'a>>,
}

/// The method and the currency of a cost. An absent one stands for all.
type CostKey<'a> = (Option<ReturnMethod>, Option<&'a str>);

/// A number for each value.
#[derive(Default)]
pub(super) struct Numbers(HashMap<String, usize>);

impl Numbers {
    fn of(&mut self, value: String) -> usize {
        let next = self.0.len();
        *self.0.entry(value).or_insert(next)
    }

    fn set(
        &mut self,
        values: Option<&Vec<String>>,
        spelling: fn(&str) -> String,
    ) -> Option<BTreeSet<usize>> {
        Some(values?.iter().map(|value| self.of(spelling(value))).collect())
    }
}

impl<'a> ComparedRule<'a> {
    pub(super) fn new(rule: &'a Rule, merchant_currency: &'a str, numbers: &mut Numbers) -> Self {
        let Conditions { line_tags, order_tags, countries, reasons, concepts, shoppers, .. } =
            &rule.when;
        Self {
            rule,
            line_tags: numbers.set(line_tags.as_ref(), normalized_tag),
            order_tags: numbers.set(order_tags.as_ref(), normalized_tag),
            countries: numbers.set(countries.as_ref(), str::to_owned),
            reasons: numbers.set(reasons.as_ref(), str::to_owned),
            methods: rule.when.methods.as_ref().map(|methods| methods.iter().copied().collect()),
            outcomes: rule.when.outcomes.as_ref().map(|it| it.iter().copied().collect()),
            concepts: numbers.set(concepts.as_ref(), str::to_owned),
            shoppers: numbers.set(shoppers.as_ref(), str::to_owned),
            costs: rule
                .then
                .costs
                .iter()
                .flatten()
                .map(|cost| cost.key(merchant_currency))
                .collect(),
        }
    }

    /// The ids of the earlier rules that decide every effect of this rule whenever it matches, if they do.
    pub(super) fn shadowed_by(&self, earlier: &[Self]) -> Option<String> {
        let covering: Vec<_> = earlier.iter().filter(|rule| rule.holds_with(self)).collect();
        let mut deciding = Vec::new();
        for names in NAMED {
            if names(&self.rule.then) {
                let rule = covering.iter().find(|it| names(&it.rule.then))?;
                deciding.push(rule.rule.id.as_str());
            }
        }
        for cost in &self.costs {
            let rule = covering.iter().find(|it| it.covers(*cost))?;
            deciding.push(rule.rule.id.as_str());
        }
        deciding.sort_unstable();
        deciding.dedup();
        Some(deciding.join(", "))
    }

    /// Whether a cost of this rule applies wherever the other does.
    fn covers(&self, (method, currency): CostKey<'_>) -> bool {
        let wider = [(method, currency), (None, currency), (method, None), (None, None)];
        wider.iter().any(|key| self.costs.contains(key))
    }

    /// Whether the conditions of this rule hold whenever those of the other one do.
    fn holds_with(&self, other: &Self) -> bool {
        implied(self.line_tags.as_ref(), other.line_tags.as_ref())
            && implied(self.order_tags.as_ref(), other.order_tags.as_ref())
            && implied(self.countries.as_ref(), other.countries.as_ref())
            && implied(self.reasons.as_ref(), other.reasons.as_ref())
            && implied(self.methods.as_ref(), other.methods.as_ref())
            && implied(self.outcomes.as_ref(), other.outcomes.as_ref())
            && implied(self.concepts.as_ref(), other.concepts.as_ref())
            && implied(self.shoppers.as_ref(), other.shoppers.as_ref())
            && self.rule.when.ranges_hold_with(&other.rule.when)
            && self.rule.when.skus_hold_with(&other.rule.when)
    }
}

/// Whether effects name an effect, for every effect but costs.
const NAMED: [fn(&Effects) -> bool; 9] = [
    |then| then.returnable.is_some(),
    |then| then.window.is_some(),
    |then| then.methods.is_some(),
    |then| then.outcomes.is_some(),
    |then| then.keep.is_some(),
    |then| then.gift_card_bonus_percent.is_some(),
    |then| then.exchange_bonus_percent.is_some(),
    |then| then.review.is_some(),
    |then| then.return_to.is_some(),
];

impl Cost {
    /// A cost of 0 without a currency is for every currency.
    fn key<'a>(&'a self, merchant_currency: &'a str) -> CostKey<'a> {
        let currency = match &self.currency {
            None if self.shipping_cost_cents == 0 => None,
            own => Some(own.as_deref().unwrap_or(merchant_currency)),
        };
        (self.method, currency)
    }
}

impl Conditions {
    /// Whether the patterns of these conditions match whenever those of the others do. The reader of rules limits the
    /// number of patterns of a policy.
    fn skus_hold_with(&self, other: &Self) -> bool {
        let Some(own) = &self.skus else { return true };
        // A pattern that matches the other pattern as a text matches all that the other one does.
        let is_covered = |sku: &String| own.iter().any(|pattern| matches_pattern(pattern, sku));
        other.skus.as_ref().is_some_and(|other| other.iter().all(is_covered))
    }

    /// Whether the ranges of these conditions hold whenever those of the others do.
    fn ranges_hold_with(&self, other: &Self) -> bool {
        let days = |own: Option<DayRange>, other: Option<DayRange>| {
            own.is_none_or(|own| {
                other.is_some_and(|it| contains((own.min, own.max), (it.min, it.max)))
            })
        };
        days(self.days_since_order, other.days_since_order)
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

/// Whether one value of a set holds whenever one of the other set does. An absent set always holds.
fn implied<T: Ord>(own: Option<&BTreeSet<T>>, other: Option<&BTreeSet<T>>) -> bool {
    own.is_none_or(|own| other.is_some_and(|other| other.is_subset(own)))
}

/// Whether a range contains the other one. An absent end is open.
fn contains<T: PartialOrd>(own: (Option<T>, Option<T>), other: (Option<T>, Option<T>)) -> bool {
    let min = own.0.is_none_or(|own| other.0.is_some_and(|other| own <= other));
    let max = own.1.is_none_or(|own| other.1.is_some_and(|other| own >= other));
    min && max
}
