//! The rules of a merchant for returns, in order.
//!
//! Each rule has conditions, which must all hold, and effects. For each effect the first rule that matches and names
//! it decides; the merchant's other settings are the last rule. [`crate::policy`] applies the rules.
//!
//! See docs/decisions/return-policies.md.

mod check;
mod names;
mod read;
mod shadowed;

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::appearance::Language;
use super::return_method::ReturnMethod;
use crate::erasure::EmailDigest;

pub use check::PolicyWarning;
pub(super) use read::RulesChange;

/// The rules of a merchant for returns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Policy {
    /// For each effect the first rule that matches and names it decides. The merchant's other settings are the last
    /// rule.
    #[schema(max_items = 100)]
    pub rules: Vec<Rule>,
    /// Lists of shoppers that rules name. A list has the SHA-256 digests of e-mail addresses in lower case without
    /// surrounding spaces.
    #[schema(value_type = BTreeMap<String, Vec<EmailDigest>>)]
    pub shoppers: BTreeMap<String, Vec<EmailDigest>>,
}

/// A rule: if every condition of `when` holds, `then` has the effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Rule {
    /// Unique among the rules. Responses name the rule that caused a refusal, a cost or a restriction.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[a-z0-9][a-z0-9-]*$",
        example = "final-sale"
    )]
    pub id: String,
    /// The words in which the portal tells shoppers why they cannot do something, by language. Without the shopper's
    /// language the portal uses its own words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false, value_type = BTreeMap<String, String>, example = json!({ "en": "Sale items stay yours." }))]
    pub text: BTreeMap<Language, String>,
    /// Without conditions the rule matches always.
    #[serde(default)]
    #[schema(required = false)]
    pub when: Conditions,
    pub then: Effects,
}

/// The conditions of a rule. All must hold. A list holds if one of its values does.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Conditions {
    /// Tags of the order line, compared without case and surrounding spaces.
    #[schema(nullable = false, min_items = 1, max_items = 100, example = json!(["FinalSale"]))]
    pub line_tags: Option<Vec<String>>,
    /// Tags of the order, compared like those of the line.
    #[schema(nullable = false, min_items = 1, max_items = 100)]
    pub order_tags: Option<Vec<String>>,
    /// SKUs, in which `*` stands for any characters. A line without a SKU has its UPC. All rules together have at most
    /// 1000.
    #[schema(nullable = false, min_items = 1, max_items = 100, example = json!(["TENT-*"]))]
    pub skus: Option<Vec<String>>,
    #[schema(nullable = false)]
    pub unit_price: Option<PriceRange>,
    /// The `weight` of the line. Never holds for a line without a weight.
    #[schema(nullable = false)]
    pub weight: Option<WeightRange>,
    /// The countries of the shipping address, as ISO 3166-1 codes.
    #[schema(nullable = false, min_items = 1, max_items = 250, example = json!(["DE", "AT"]))]
    pub countries: Option<Vec<String>>,
    /// The day of the order, in the merchant's time zone.
    #[schema(nullable = false)]
    pub ordered: Option<DateRange>,
    /// Days since the order was placed.
    #[schema(nullable = false)]
    pub days_since_order: Option<DayRange>,
    /// Days since `shipped_date` of the line. Never holds without one.
    #[schema(nullable = false)]
    pub days_since_shipping: Option<DayRange>,
    /// Days since `delivered_date` of the line. Never holds without one.
    #[schema(nullable = false)]
    pub days_since_delivery: Option<DayRange>,
    /// Codes of the merchant's return reasons.
    #[schema(nullable = false, min_items = 1, max_items = 100, example = json!(["DAMAGED"]))]
    pub reasons: Option<Vec<String>>,
    #[schema(nullable = false, min_items = 1, max_items = 3)]
    pub methods: Option<Vec<ReturnMethod>>,
    #[schema(nullable = false, min_items = 1, max_items = 3)]
    pub outcomes: Option<Vec<Outcome>>,
    /// The `concept` of the line, or else of the order, or else of the merchant.
    #[schema(nullable = false, min_items = 1, max_items = 100)]
    pub concepts: Option<Vec<String>>,
    /// The shopper's earlier returns. Never holds for an order without an e-mail address.
    #[schema(nullable = false)]
    pub returns_of_shopper: Option<ReturnCount>,
    /// Names of lists in `shoppers`: the shopper is on one of them.
    #[schema(nullable = false, min_items = 1, max_items = 10)]
    pub shoppers: Option<Vec<String>>,
}

/// A unit price from the order line, inclusive.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PriceRange {
    #[schema(nullable = false, minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub min_cents: Option<i64>,
    #[schema(nullable = false, minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub max_cents: Option<i64>,
    /// The currency of the order. Default: that of the merchant. Never holds for orders in another currency.
    #[schema(nullable = false, example = "USD")]
    pub currency: Option<String>,
}

/// A weight in the unit of the lines, inclusive.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WeightRange {
    #[schema(nullable = false, minimum = 0, maximum = 1_000_000_000)]
    pub min: Option<f64>,
    #[schema(nullable = false, minimum = 0, maximum = 1_000_000_000)]
    pub max: Option<f64>,
}

/// Days in the merchant's time zone, inclusive.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DateRange {
    #[schema(nullable = false, value_type = Option<String>, format = Date, example = "2026-11-01")]
    pub from: Option<NaiveDate>,
    #[schema(nullable = false, value_type = Option<String>, format = Date, example = "2026-12-24")]
    pub until: Option<NaiveDate>,
}

/// A number of days, inclusive. The day itself is day 0.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DayRange {
    #[schema(nullable = false, maximum = 36500)]
    pub min: Option<i64>,
    #[schema(nullable = false, maximum = 36500)]
    pub max: Option<i64>,
}

/// The number of returns that the shopper of the order started in the last days, without canceled and declined ones. At most 1000
/// are counted.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnCount {
    #[schema(minimum = 1, maximum = 3650, example = 90)]
    pub days: i64,
    #[schema(nullable = false, minimum = 0, maximum = 1000, example = 5)]
    pub min: Option<i64>,
    #[schema(nullable = false, minimum = 0, maximum = 1000)]
    pub max: Option<i64>,
}

crate::words! {
    /// The result that a shopper can choose for a unit.
    pub enum Outcome as "snake_case" {
        Refund,
        Exchange,
        GiftCard,
    }
}

/// The effects of a rule. It names at least one.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Effects {
    /// Whether the unit can be returned at all. `true` also overrides the tags that forbid a return.
    #[schema(nullable = false)]
    pub returnable: Option<bool>,
    #[schema(nullable = false)]
    pub window: Option<Window>,
    /// Return shipping costs. A rule names only the costs of the methods and currencies in its list.
    #[schema(nullable = false, min_items = 1, max_items = 50)]
    pub costs: Option<Vec<Cost>>,
    /// The methods that shoppers can choose, of those that the merchant offers.
    #[schema(nullable = false, min_items = 1, max_items = 3)]
    pub methods: Option<Vec<ReturnMethod>>,
    /// The results that shoppers can choose, of those that the merchant offers.
    #[schema(nullable = false, min_items = 1, max_items = 3)]
    pub outcomes: Option<Vec<Outcome>>,
    #[schema(nullable = false)]
    pub keep: Option<Keep>,
    /// The bonus for a gift card, in per cent of the amount paid for the unit.
    #[schema(nullable = false, minimum = 0, maximum = 100)]
    pub gift_card_bonus_percent: Option<i64>,
    /// The discount on a variant of another price, in per cent of the amount paid for the unit.
    #[schema(nullable = false, minimum = 0, maximum = 100)]
    pub exchange_bonus_percent: Option<i64>,
    /// Whether the return waits for a review before it starts.
    #[schema(nullable = false)]
    pub review: Option<Review>,
    /// Our identifier of the warehouse of the merchant to which the unit goes. The warehouse has an address.
    #[schema(nullable = false, min_length = 1, max_length = 63, example = "reno")]
    pub return_to: Option<String>,
}

/// The time in which a unit can be returned, in days, until a day, or until the later of both.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Window {
    #[schema(nullable = false, minimum = 0, maximum = 3650)]
    pub days: Option<u16>,
    /// The day from which the days count. Default: `shipping`.
    #[schema(nullable = false)]
    pub from: Option<WindowStart>,
    /// The last day, in the merchant's time zone.
    #[schema(nullable = false, value_type = Option<String>, format = Date, example = "2027-01-31")]
    pub until: Option<NaiveDate>,
}

crate::words! {
    /// The day from which the days of a window count. An unknown day is replaced by the day before it in this list.
    pub enum WindowStart as "snake_case" {
        Order,
        Shipping,
        Delivery,
    }
}

/// The shipping cost of a return.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cost {
    /// Default: every method.
    #[schema(nullable = false)]
    pub method: Option<ReturnMethod>,
    /// Default: the currency of the merchant. A cost of 0 without a currency is for every currency.
    #[schema(nullable = false, example = "USD")]
    pub currency: Option<String>,
    #[schema(minimum = 0, maximum = 100_000_000)]
    pub shipping_cost_cents: i64,
}

/// Shoppers can keep units if all units of the return, together with those of its orders that they keep already, cost at
/// most an amount.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Keep {
    #[schema(minimum = 0, maximum = 100_000_000, example = 1500)]
    pub up_to_cents: i64,
    /// Default: the currency of the merchant. In other currencies shoppers can keep nothing.
    #[schema(nullable = false, example = "USD")]
    pub currency: Option<String>,
}

/// A review of a return by the merchant before it starts.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Review {
    /// `false` means that the return needs no review, whatever later rules say. It comes alone.
    #[serde(default = "is_required", skip_serializing_if = "Clone::clone")]
    #[schema(required = false, default = true)]
    pub required: bool,
    /// Days after the request within which the merchant decides. Required unless `required` is false.
    #[schema(nullable = false, minimum = 1, maximum = 60)]
    pub within_days: Option<u16>,
    /// The decision if nobody decides in time. Required unless `required` is false.
    #[schema(nullable = false)]
    pub then: Option<ReviewDecision>,
}

fn is_required() -> bool {
    true
}

/// The terms of a review that a return needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewTerms {
    pub within_days: u16,
    /// The decision if nobody decides in time.
    pub then: ReviewDecision,
}

impl Review {
    /// The terms, if the return needs the review.
    pub fn terms(self) -> Option<ReviewTerms> {
        let Self { required, within_days, then } = self;
        required.then_some(ReviewTerms { within_days: within_days?, then: then? })
    }
}

crate::words! {
    /// The decision about a return that waits for review.
    pub enum ReviewDecision as "snake_case" {
        Approve,
        Decline,
    }
}

impl Outcome {
    pub const ALL: [Self; 3] = [Self::Refund, Self::Exchange, Self::GiftCard];

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Policy {
    /// Whether there are neither rules nor lists.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.shoppers.is_empty()
    }

    /// The longest time for which a rule counts the returns of a shopper, in days. `None` if no rule counts them.
    pub fn counted_days(&self) -> Option<i64> {
        let counts = self.rules.iter().filter_map(|rule| rule.when.returns_of_shopper);
        counts.map(|count| count.days).max()
    }

    /// Whether a rule lets shoppers keep units up to an amount.
    pub fn limits_keeping(&self) -> bool {
        self.rules.iter().any(|rule| rule.then.keep.is_some())
    }

    /// Whether a rule names a list of shoppers.
    pub fn names_shoppers(&self) -> bool {
        self.rules.iter().any(|rule| rule.when.shoppers.is_some())
    }

    /// The first rule that returns units to a warehouse.
    pub fn rule_to(&self, warehouse: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.then.return_to.as_deref() == Some(warehouse))
    }

    /// The rule with an id.
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }
}

impl Cost {
    /// Whether this is the cost of a method for orders in a currency.
    pub fn is_for(&self, method: ReturnMethod, currency: &str, merchant_currency: &str) -> bool {
        let is_currency = match &self.currency {
            Some(own) => own == currency,
            None => self.shipping_cost_cents == 0 || currency == merchant_currency,
        };
        is_currency && self.method.is_none_or(|own| own == method)
    }
}

/// The spelling of a tag in which tags are compared. Case and surrounding spaces do not count, because merchants spell
/// tags differently.
pub fn normalized_tag(tag: &str) -> String {
    tag.trim().to_lowercase()
}

/// Whether a text matches a pattern in which `*` stands for any characters.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let Some((middle, end)) = rest.rsplit_once('*') else { return text.ends_with(rest) };
    for part in middle.split('*') {
        let Some(at) = text.find(part) else { return false };
        text = text.get(at + part.len()..).unwrap_or_default();
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests;
