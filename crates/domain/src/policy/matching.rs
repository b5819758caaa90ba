//! Whether the conditions of a rule hold.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Choice, PolicyAt, UnitFacts};
use crate::merchant::{
    Conditions, DateRange, DayRange, PriceRange, ReturnCount, is_same_tag, matches_pattern,
};
use crate::order::OrderLine;

impl PolicyAt<'_> {
    /// Whether the conditions about the unit, its order and its shopper hold.
    pub(super) fn concerns(&self, when: &Conditions, unit: &UnitFacts<'_>) -> bool {
        let Conditions {
            line_tags,
            order_tags,
            skus,
            unit_price,
            weight,
            countries,
            ordered,
            days_since_order,
            days_since_shipping,
            days_since_delivery,
            reasons: _,
            methods: _,
            outcomes: _,
            concepts,
            returns_of_shopper,
            shoppers,
        } = when;
        let UnitFacts { order, line, .. } = unit;
        let is_tag = |tag: &String, own: &String| is_same_tag(tag, own);
        let country = &order.shipping_address.country_code;
        any_of(line_tags, &line.tags, is_tag)
            && any_of(order_tags, &order.tags, is_tag)
            && any_of(skus, [sku(line)], |pattern, sku| matches_pattern(pattern, sku))
            && unit_price.as_ref().is_none_or(|range| self.is_price(range, unit))
            && weight.is_none_or(|range| {
                line.weight.is_some_and(|weight| is_within(weight, range.min, range.max))
            })
            && any_of(countries, [country], |wanted, own| wanted == own)
            && ordered.is_none_or(|range| self.is_day(range, order.created_at))
            && self.are_days(*days_since_order, Some(order.created_at))
            && self.are_days(*days_since_shipping, line.shipped_date)
            && self.are_days(*days_since_delivery, line.delivered_date)
            && any_of(concepts, self.concept(unit), |wanted, own| wanted == own)
            && returns_of_shopper.is_none_or(|count| self.is_count(count, unit))
            && shoppers.as_ref().is_none_or(|names| self.is_listed(names, unit))
    }

    fn is_price(&self, range: &PriceRange, unit: &UnitFacts<'_>) -> bool {
        let currency = range.currency.as_ref().unwrap_or(&self.settings.currency);
        unit.order.currency.code() == currency
            && is_within(unit.line.unit_price_amount_cents, range.min_cents, range.max_cents)
    }

    fn is_day(&self, range: DateRange, time: DateTime<Utc>) -> bool {
        is_within(self.day(time), range.from, range.until)
    }

    fn are_days(&self, range: Option<DayRange>, since: Option<DateTime<Utc>>) -> bool {
        let Some(range) = range else { return true };
        since.is_some_and(|since| {
            let days = (self.day(self.now) - self.day(since)).num_days();
            is_within(days, range.min, range.max)
        })
    }

    /// The brand that sold the unit.
    fn concept<'u>(&'u self, unit: &'u UnitFacts<'_>) -> Option<&'u String> {
        let concepts = [&unit.line.concept, &unit.order.concept, &self.settings.concept];
        concepts.into_iter().flatten().find(|concept| !concept.is_empty())
    }

    fn is_count(&self, count: ReturnCount, unit: &UnitFacts<'_>) -> bool {
        let Some(returned_at) = &unit.shopper.returned_at else { return false };
        let since = self.now - TimeDelta::days(count.days);
        let returns = returned_at.iter().filter(|at| **at > since && **at <= self.now).count();
        is_within(i64::try_from(returns).unwrap_or(i64::MAX), count.min, count.max)
    }

    fn is_listed(&self, names: &[String], unit: &UnitFacts<'_>) -> bool {
        let Some(email) = &unit.shopper.email else { return false };
        let lists = &self.settings.policy.shoppers;
        names.iter().filter_map(|name| lists.get(name)).any(|list| list.contains(email))
    }
}

/// Whether the conditions about the choice hold.
pub(super) fn fits(when: &Conditions, choice: &Choice<'_>) -> bool {
    any_of(&when.reasons, choice.reason, |wanted, own| wanted == own)
        && any_of(&when.methods, [choice.method], |wanted, own| *wanted == own)
        && any_of(&when.outcomes, [choice.outcome], |wanted, own| *wanted == own)
}

/// Whether one of the wanted values is that of the unit. Without wanted values the condition holds.
fn any_of<W, O: Copy>(
    wanted: &Option<Vec<W>>,
    own: impl IntoIterator<Item = O>,
    is_same: impl Fn(&W, O) -> bool,
) -> bool {
    let Some(wanted) = wanted else { return true };
    own.into_iter().any(|own| wanted.iter().any(|wanted| is_same(wanted, own)))
}

/// An absent end is open.
fn is_within<T: PartialOrd>(value: T, min: Option<T>, max: Option<T>) -> bool {
    min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
}

/// The SKU, or the UPC if the line has no SKU.
fn sku(line: &OrderLine) -> &str {
    line.sku.as_deref().or(line.upc.as_deref()).unwrap_or_default()
}
