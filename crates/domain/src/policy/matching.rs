//! Whether the conditions of a rule hold.
//!
//! Conditions about the order and its shopper are checked once for an order, and those about the line once for a line.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Choice, LinePolicy, OrderPolicy, PlacedRule, PolicyAt, ShopperFacts};
use crate::merchant::{
    Conditions, DateRange, DayRange, PriceRange, ReturnCount, ReturnMethod, Rule, matches_pattern,
    normalized_tag,
};
use crate::order::{Order, OrderLine};

impl<'a> PolicyAt<'a> {
    /// The rules whose conditions about the order and its shopper hold.
    pub fn order(&self, order: &'a Order, shopper: &'a ShopperFacts) -> OrderPolicy<'a> {
        let tags = normalized_tags(&order.tags);
        let has_tag = self.prepared.order_tags.holds(tags.iter().map(String::as_str));
        let country = order.shipping_address.country_code.as_str();
        let is_in_country = self.prepared.countries.holds([country]);
        let is_listed = self.prepared.shoppers.holds(self.lists_with(shopper));
        let since_order = Some(self.days_since(order.created_at));
        let holds = |place: usize, when: &Conditions| {
            is_set(&has_tag, place)
                && is_set(&is_in_country, place)
                && is_set(&is_listed, place)
                && when.ordered.is_none_or(|range| self.is_day(range, order.created_at))
                && are_days(when.days_since_order, since_order)
                && when.returns_of_shopper.is_none_or(|count| self.is_count(count, shopper))
        };
        let rules = self.settings.policy.rules.iter().enumerate();
        let rules = rules
            .filter(|(place, rule)| holds(*place, &rule.when))
            .map(|(place, rule)| PlacedRule {
                place,
                rule,
                costs: self.costs(rule, order.currency.code()),
            })
            .collect();
        OrderPolicy { at: self.clone(), order, rules }
    }

    /// The names of the lists with the shopper.
    fn lists_with(&self, shopper: &'a ShopperFacts) -> impl Iterator<Item = &'a str> {
        let lists = &self.settings.policy.shoppers;
        shopper.email.iter().flat_map(move |email| {
            let with_email = lists.iter().filter(move |(_, list)| list.contains(email));
            with_email.map(|(name, _)| name.as_str())
        })
    }

    fn is_day(&self, range: DateRange, time: DateTime<Utc>) -> bool {
        is_within(self.day(time), range.from, range.until)
    }

    fn days_since(&self, time: DateTime<Utc>) -> i64 {
        (self.day(self.now) - self.day(time)).num_days()
    }

    fn is_count(&self, count: ReturnCount, shopper: &ShopperFacts) -> bool {
        let Some(returned_at) = &shopper.returned_at else { return false };
        let since = self.now - TimeDelta::days(count.days);
        let returns = returned_at.iter().filter(|at| **at > since && **at <= self.now).count();
        is_within(i64::try_from(returns).unwrap_or(i64::MAX), count.min, count.max)
    }

    /// The cost that a rule names for each method.
    fn costs(&self, rule: &Rule, currency: &str) -> [Option<i64>; ReturnMethod::ALL.len()] {
        let own = &self.settings.currency;
        let mut costs = [None; ReturnMethod::ALL.len()];
        for (cost, method) in costs.iter_mut().zip(ReturnMethod::ALL) {
            let mut named = rule.then.costs.iter().flatten();
            let first = named.find(|it| it.is_for(*method, currency, own));
            *cost = first.map(|it| it.shipping_cost_cents);
        }
        costs
    }
}

impl<'a> OrderPolicy<'a> {
    /// The rules whose conditions about the line hold, too.
    pub fn line(&self, line: &'a OrderLine) -> LinePolicy<'a> {
        let Self { at, rules, .. } = self;
        let tags = normalized_tags(&line.tags);
        let has_tag = at.prepared.line_tags.holds(tags.iter().map(String::as_str));
        let is_of_concept = at.prepared.concepts.holds(self.concept(line));
        let since_shipping = line.shipped_date.map(|time| at.days_since(time));
        let since_delivery = line.delivered_date.map(|time| at.days_since(time));
        let holds = |PlacedRule { place, rule, .. }: &&PlacedRule<'a>| {
            let when = &rule.when;
            is_set(&has_tag, *place)
                && is_set(&is_of_concept, *place)
                && when.unit_price.as_ref().is_none_or(|range| self.is_price(range, line))
                && when.weight.is_none_or(|range| {
                    line.weight.is_some_and(|weight| is_within(weight, range.min, range.max))
                })
                && are_days(when.days_since_shipping, since_shipping)
                && are_days(when.days_since_delivery, since_delivery)
                && when.skus.as_ref().is_none_or(|patterns| {
                    patterns.iter().any(|pattern| matches_pattern(pattern, sku(line)))
                })
        };
        let rules: Arc<[_]> = rules.iter().filter(holds).copied().collect();
        let mut spelled = line.tags.iter().zip(&tags);
        let final_sale_tag = spelled
            .find(|(_, tag)| at.prepared.is_final_sale(tag))
            .map(|(spelling, _)| spelling.as_str());
        LinePolicy { at: at.clone(), rules, final_sale_tag }
    }

    fn is_price(&self, range: &PriceRange, line: &OrderLine) -> bool {
        let currency = range.currency.as_ref().unwrap_or(&self.at.settings.currency);
        self.order.currency.code() == currency
            && is_within(line.unit_price_amount_cents, range.min_cents, range.max_cents)
    }

    /// The brand that sold the line.
    fn concept<'c>(&'c self, line: &'c OrderLine) -> Option<&'c str> {
        let concepts = [&line.concept, &self.order.concept, &self.at.settings.concept];
        let mut concepts = concepts.into_iter().flatten().map(String::as_str);
        concepts.find(|concept| !concept.is_empty())
    }
}

/// Whether the conditions about the method and the result hold. [`super::PreparedPolicy`] has those about the reason.
pub(super) fn fits(when: &Conditions, choice: &Choice<'_>) -> bool {
    when.methods.as_ref().is_none_or(|methods| methods.contains(&choice.method))
        && when.outcomes.as_ref().is_none_or(|outcomes| outcomes.contains(&choice.outcome))
}

/// Whether the condition of the rule at a place holds.
pub(super) fn is_set(holds: &[bool], place: usize) -> bool {
    holds.get(place).is_some_and(|holds| *holds)
}

fn normalized_tags(tags: &[String]) -> Vec<String> {
    tags.iter().map(|tag| normalized_tag(tag)).collect()
}

/// A range never holds for an unknown number of days.
fn are_days(range: Option<DayRange>, days: Option<i64>) -> bool {
    range.is_none_or(|range| days.is_some_and(|days| is_within(days, range.min, range.max)))
}

/// An absent end is open.
fn is_within<T: PartialOrd>(value: T, min: Option<T>, max: Option<T>) -> bool {
    min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
}

/// The SKU, or the UPC if the line has no SKU.
fn sku(line: &OrderLine) -> &str {
    line.sku.as_deref().or(line.upc.as_deref()).unwrap_or_default()
}
