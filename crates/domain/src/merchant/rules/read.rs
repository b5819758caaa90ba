//! Readers of rules.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use utoipa::ToSchema;

use super::{
    Conditions, Cost, DateRange, DayRange, Effects, Keep, Policy, PriceRange, ReturnCount, Review,
    Rule, WeightRange, Window,
};
use crate::erasure::EmailDigest;
use crate::json::{
    Field, Object, array, boolean, currency, integer, number, object, parsed, printable_text,
    read_fields, text, variant,
};
use crate::merchant::Settings;
use crate::merchant::appearance::{Language, distinct, entries};
use crate::merchant::patch::replace;
use crate::warehouse::Warehouses;

pub(super) const MAX_RULES: usize = 100;
const MAX_LISTS: usize = 10;
const MAX_SHOPPERS: usize = 1_000;
/// Patterns of all rules together. Each line of an order is compared with each pattern.
const MAX_PATTERNS: usize = 1_000;

/// Changes to the rules. `rules` and `shoppers` each replace the previous value.
#[derive(Debug, Clone, Default, PartialEq, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PolicyChange)]
pub(in crate::merchant) struct RulesChange {
    #[schema(max_items = 100)]
    rules: Option<Vec<Rule>>,
    #[schema(value_type = Option<BTreeMap<String, Vec<EmailDigest>>>)]
    shoppers: Option<BTreeMap<String, Vec<EmailDigest>>>,
}

impl RulesChange {
    pub(in crate::merchant) fn read(document: &Object<'_>) -> Option<Self> {
        let mut ids = BTreeSet::new();
        let rule = object(|rule| read_rule(rule, &mut ids));
        let mut read_rules = array(0..=MAX_RULES, rule);
        let rules = |field: Field<'_>| {
            let rules = read_rules(field)?;
            let patterns = |rule: &Rule| rule.when.skus.as_ref().map_or(0, Vec::len);
            if rules.iter().map(patterns).sum::<usize>() > MAX_PATTERNS {
                return field.invalid(format!(
                    "must have at most {MAX_PATTERNS} patterns of SKUs together"
                ));
            }
            Some(rules)
        };
        read_fields!(document => Self {
            rules: document.optional("rules", rules),
            shoppers: document.optional("shoppers", shoppers),
        })
    }

    pub(in crate::merchant) fn apply(self, policy: &mut Policy) {
        replace(&mut policy.rules, self.rules);
        replace(&mut policy.shoppers, self.shoppers);
    }
}

impl Settings {
    /// The settings with a draft of the policy, which is a field `policy`. Reports every fault of the draft. Rules can
    /// name these warehouses of the merchant.
    pub fn with_policy(&self, draft: &Object<'_>, warehouses: &Warehouses) -> Option<Self> {
        let Some(change) = RulesChange::read(draft) else {
            let errors = self.policy.errors_of_draft(draft, &self.returns, warehouses);
            errors.into_iter().for_each(|error| draft.report(error));
            return None;
        };
        let mut settings = self.clone();
        change.apply(&mut settings.policy);
        let errors = settings.policy.errors(&settings.returns, warehouses);
        let is_valid = errors.is_empty();
        errors.into_iter().for_each(|error| draft.report(error));
        is_valid.then_some(settings)
    }
}

fn shoppers(field: Field<'_>) -> Option<BTreeMap<String, Vec<EmailDigest>>> {
    object(|document| {
        if document.entries().count() > MAX_LISTS {
            return field.invalid(format!("must have at most {MAX_LISTS} lists"));
        }
        entries(document, |name, list| match identifier(name) {
            Ok(name) => Some((name, array(0..=MAX_SHOPPERS, distinct(digest))(list)?)),
            Err(detail) => list.invalid(format!("the name {detail}")),
        })
    })(field)
}

fn digest(field: Field<'_>) -> Option<EmailDigest> {
    parsed(1..=254, |digest| {
        let is_digit = |digit: char| digit.is_ascii_digit() || ('a'..='f').contains(&digit);
        match digest.len() == 64 && digest.chars().all(is_digit) {
            true => Ok(EmailDigest::from(digest.to_owned())),
            false => Err(
                "must be the SHA-256 digest of an e-mail address, as 64 lower-case hexadecimal digits",
            ),
        }
    })(field)
}

/// A name of a rule or of a list.
fn identifier(name: &str) -> Result<String, &'static str> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match name.len() <= 64
        && name.chars().all(is_plain)
        && !name.starts_with('-')
        && !name.is_empty()
    {
        true => Ok(name.to_owned()),
        false => Err("must have 1 to 64 lower-case letters, digits and hyphens"),
    }
}

fn read_rule(rule: &Object<'_>, ids: &mut BTreeSet<String>) -> Option<Rule> {
    let id = rule.required("id", parsed(1..=64, identifier));
    if id.as_ref().is_some_and(|id| !ids.insert(id.clone())) {
        rule.invalid("id", "another rule has the same id");
    }
    let text = rule.optional("text", object(texts));
    let when = rule.optional("when", object(read_conditions));
    read_fields!(rule => Rule {
        id: id,
        text: text.map(Option::unwrap_or_default),
        when: when.map(Option::unwrap_or_default),
        then: rule.required("then", read_effects),
    })
}

fn texts(document: &Object<'_>) -> Option<BTreeMap<Language, String>> {
    entries(document, |language, label| match language.parse::<Language>() {
        Ok(language) => Some((language, printable_text(1..=500)(label)?)),
        Err(_) => label.invalid("unknown language: known are en, de, fr, es"),
    })
}

fn read_conditions(when: &Object<'_>) -> Option<Conditions> {
    let texts = |name, most| when.optional(name, array(1..=most, distinct(text(1..=255))));
    let days = |name| when.optional(name, object(read_days));
    read_fields!(when => Conditions {
        line_tags: texts("line_tags", 100),
        order_tags: texts("order_tags", 100),
        skus: texts("skus", 100),
        unit_price: when.optional("unit_price", object(read_prices)),
        weight: when.optional("weight", object(read_weights)),
        countries: when.optional("countries", array(1..=250, distinct(country))),
        ordered: when.optional("ordered", object(read_dates)),
        days_since_order: days("days_since_order"),
        days_since_shipping: days("days_since_shipping"),
        days_since_delivery: days("days_since_delivery"),
        reasons: texts("reasons", 100),
        methods: when.optional("methods", array(1..=3, distinct(variant))),
        outcomes: when.optional("outcomes", array(1..=3, distinct(variant))),
        concepts: texts("concepts", 100),
        returns_of_shopper: when.optional("returns_of_shopper", object(read_count)),
        shoppers: texts("shoppers", MAX_LISTS),
    })
}

fn read_prices(range: &Object<'_>) -> Option<PriceRange> {
    let cents = |name| range.optional(name, integer(0..=1_000_000_000_000_000));
    let min_cents = cents("min_cents");
    let max_cents = cents("max_cents");
    check_range(range, ["min_cents", "max_cents"], min_cents, max_cents);
    read_fields!(range => PriceRange {
        min_cents: min_cents,
        max_cents: max_cents,
        currency: range.optional("currency", currency_code),
    })
}

fn read_weights(range: &Object<'_>) -> Option<WeightRange> {
    let weight = |name| range.optional(name, number(0.0..=1e9));
    let min = weight("min");
    let max = weight("max");
    check_range(range, ["min", "max"], min, max);
    read_fields!(range => WeightRange { min: min, max: max })
}

fn read_dates(range: &Object<'_>) -> Option<DateRange> {
    let from = range.optional("from", date);
    let until = range.optional("until", date);
    check_range(range, ["from", "until"], from, until);
    read_fields!(range => DateRange { from: from, until: until })
}

fn read_days(range: &Object<'_>) -> Option<DayRange> {
    let days = |name| range.optional(name, integer(0..=36_500));
    let min = days("min");
    let max = days("max");
    check_range(range, ["min", "max"], min, max);
    read_fields!(range => DayRange { min: min, max: max })
}

fn read_count(range: &Object<'_>) -> Option<ReturnCount> {
    let returns = |name| range.optional(name, integer(0..=1_000));
    let min = returns("min");
    let max = returns("max");
    check_range(range, ["min", "max"], min, max);
    read_fields!(range => ReturnCount {
        days: range.required("days", integer(1..=3_650)),
        min: min,
        max: max,
    })
}

/// Rejects a range without ends, and one that holds for nothing.
fn check_range<T: PartialOrd>(
    range: &Object<'_>,
    [low, high]: [&str; 2],
    min: Option<Option<T>>,
    max: Option<Option<T>>,
) {
    match (min, max) {
        (Some(None), Some(None)) => range.missing(low),
        (Some(Some(min)), Some(Some(max))) if min > max => {
            range.invalid(high, format!("can never hold: must not be below {low}"));
        }
        _ => {}
    }
}

fn read_effects(field: Field<'_>) -> Option<Effects> {
    object(|then| {
        if then.entries().all(|(_, effect)| effect.value().is_null()) {
            return field.invalid("must have an effect");
        }
        let percent = |name| then.optional(name, integer(0..=100));
        let mut seen = BTreeSet::new();
        let cost = object(|cost| read_cost(cost, &mut seen));
        read_fields!(then => Effects {
            returnable: then.optional("returnable", boolean),
            window: then.optional("window", object(read_window)),
            costs: then.optional("costs", array(1..=50, cost)),
            methods: then.optional("methods", array(1..=3, distinct(variant))),
            outcomes: then.optional("outcomes", array(1..=3, distinct(variant))),
            keep: then.optional("keep", object(read_keep)),
            gift_card_bonus_percent: percent("gift_card_bonus_percent"),
            exchange_bonus_percent: percent("exchange_bonus_percent"),
            review: then.optional("review", object(read_review)),
            return_to: then.optional("return_to", text(1..=63)),
        })
    })(field)
}

fn read_window(window: &Object<'_>) -> Option<Window> {
    if !window.has("days") && !window.has("until") {
        window.missing("days");
    }
    if window.has("from") && !window.has("days") {
        window.invalid("from", "comes only with days");
    }
    let days = window.optional("days", integer(0..=3_650_u16));
    read_fields!(window => Window {
        days: days,
        from: window.optional("from", variant),
        until: window.optional("until", date),
    })
}

fn read_cost(
    cost: &Object<'_>,
    seen: &mut BTreeSet<(Option<super::ReturnMethod>, Option<String>)>,
) -> Option<Cost> {
    let method = cost.optional("method", variant);
    let code = cost.optional("currency", currency_code);
    if let (Some(method), Some(code)) = (&method, &code)
        && !seen.insert((*method, code.clone()))
    {
        cost.invalid("method", "another cost is for the same method and currency");
    }
    read_fields!(cost => Cost {
        method: method,
        currency: code,
        shipping_cost_cents: cost.required("shipping_cost_cents", integer(0..=100_000_000)),
    })
}

fn read_keep(keep: &Object<'_>) -> Option<Keep> {
    read_fields!(keep => Keep {
        up_to_cents: keep.required("up_to_cents", integer(0..=100_000_000)),
        currency: keep.optional("currency", currency_code),
    })
}

fn read_review(review: &Object<'_>) -> Option<Review> {
    let required = review.optional("required", boolean).map(|required| required.unwrap_or(true));
    for name in ["within_days", "then"] {
        match (required, review.has(name)) {
            (Some(true), false) => review.missing(name),
            (Some(false), true) => review.invalid(name, "must be left out if required is false"),
            _ => {}
        }
    }
    read_fields!(review => Review {
        required: required,
        within_days: review.optional("within_days", integer(1..=60_u16)),
        then: review.optional("then", variant),
    })
}

fn currency_code(field: Field<'_>) -> Option<String> {
    Some(currency(field)?.code().to_owned())
}

fn country(field: Field<'_>) -> Option<String> {
    parsed(2..=2, |code| match code.bytes().all(|letter| letter.is_ascii_uppercase()) {
        true => Ok(code.to_owned()),
        false => Err("must be an ISO 3166-1 code of two capital letters, like DE"),
    })(field)
}

fn date(field: Field<'_>) -> Option<NaiveDate> {
    parsed(10..=10, |text| match text.parse::<NaiveDate>() {
        Ok(day) => Ok(day),
        Err(_) => Err("must be a day, like 2026-12-24"),
    })(field)
}
