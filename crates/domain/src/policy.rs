//! Decides whether and on which terms units can be returned.
//!
//! [`UnitPolicy::decide`] is the only place: the list of returnable units asks it for every choice of a shopper
//! ([`UnitPolicy::offers`]), and quotes and new returns ask it for the choices of a request ([`decide_return`]). Facts come
//! before rules, then the first rule that matches and names an effect decides it, then the merchant's other settings.
//!
//! The rules are prepared once for many decisions ([`PreparedPolicy`]), and conditions about an order or a line are checked
//! once for all of its units ([`LinePolicies`]).
//!
//! See docs/decisions/return-policies.md.

mod decide;
mod lines;
mod matching;
mod offers;
mod prepared;
mod return_decision;
mod window;

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;

use crate::erasure::EmailDigest;
use crate::merchant::{Outcome, Policy, ReturnMethod, Rule, Settings};
use crate::order::{Order, OrderLine};
use crate::returns::Resolution;

pub use decide::{NON_RETURNABLE_TAGS, ReturnCost, UnitDecision};
pub use lines::LinePolicies;
pub use offers::{ChoiceOption, Offers, ReasonChoices, ReturnTo, UnavailableMethod};
pub use prepared::PreparedPolicy;
pub use return_decision::{DecidedUnit, ReturnDecision, UnitRequest, decide_return};

/// The facts that decide whether a unit can be returned.
#[derive(Debug, Clone, Copy)]
pub struct UnitFacts<'a> {
    pub order: &'a Order,
    pub line: &'a OrderLine,
    pub is_shipped: bool,
    /// The return that contains the unit, unless that return was canceled.
    pub rma_identifier: Option<&'a str>,
    pub is_refunded: bool,
    /// Whether the order cannot have another exchange.
    pub is_order_exchanged: bool,
    /// The amount that can be refunded for the unit.
    pub paid_amount_cents: i64,
    /// The amount paid for units of the order that the shopper keeps by other returns. 0 if no rule limits it.
    pub order_kept_cents: i64,
    pub shopper: &'a ShopperFacts,
}

/// The facts about the shopper of an order that rules ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShopperFacts {
    /// `None` if no rule names a list, or if the order has no e-mail address.
    pub email: Option<EmailDigest>,
    /// The times at which the shopper started returns that are not canceled. `None` if no rule counts them, or if
    /// the order has no e-mail address.
    pub returned_at: Option<Vec<DateTime<Utc>>>,
}

impl ShopperFacts {
    /// The facts about a merchant without rules.
    pub const NONE: &'static Self = &Self { email: None, returned_at: None };

    /// The facts that the rules ask for, without the returns.
    pub fn new(policy: &Policy, order: &Order) -> Self {
        let email = order.customer.email_address().filter(|_| policy.names_shoppers());
        Self { email: email.map(EmailDigest::of), returned_at: None }
    }
}

/// The choice of a shopper for a unit.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// The code of the reason; `None` stands for every reason that no rule names.
    pub reason: Option<&'a str>,
    pub method: ReturnMethod,
    pub outcome: Outcome,
    /// The sum over the units of the return, and over those of its orders that the shopper keeps already.
    pub return_paid_cents: i64,
}

/// A merchant's settings at a time.
#[derive(Debug, Clone)]
pub struct PolicyAt<'a> {
    settings: &'a Settings,
    prepared: Arc<PreparedPolicy>,
    now: DateTime<Utc>,
    zone: Tz,
}

impl<'a> PolicyAt<'a> {
    pub fn new(settings: &'a Settings, now: DateTime<Utc>) -> Self {
        Self::prepared(settings, &Arc::new(PreparedPolicy::new(settings)), now)
    }

    /// A policy whose rules are prepared already. `prepared` was made from the same settings.
    pub fn prepared(
        settings: &'a Settings,
        prepared: &Arc<PreparedPolicy>,
        now: DateTime<Utc>,
    ) -> Self {
        Self { settings, prepared: Arc::clone(prepared), now, zone: settings.zone() }
    }

    /// The policy for one unit: the rules whose conditions about the unit hold. [`LinePolicies`] is faster for many units.
    pub fn unit(&self, facts: UnitFacts<'a>) -> UnitPolicy<'a> {
        self.order(facts.order, facts.shopper).line(facts.line).unit(facts)
    }

    /// The day of a time in the merchant's time zone.
    fn day(&self, time: DateTime<Utc>) -> NaiveDate {
        time.with_timezone(&self.zone).date_naive()
    }
}

/// A rule with its place among the rules.
#[derive(Debug, Clone, Copy)]
struct PlacedRule<'a> {
    place: usize,
    rule: &'a Rule,
    /// The costs that the rule names in the currency of the order, in the order of [`ReturnMethod::ALL`].
    costs: [Option<i64>; ReturnMethod::ALL.len()],
}

/// The policy for the lines of one order.
#[derive(Debug)]
pub struct OrderPolicy<'a> {
    at: PolicyAt<'a>,
    order: &'a Order,
    /// The rules whose conditions about the order and its shopper hold, in their order.
    rules: Vec<PlacedRule<'a>>,
}

/// The policy for the units of one line.
#[derive(Debug)]
pub struct LinePolicy<'a> {
    at: PolicyAt<'a>,
    /// The rules whose conditions about the unit hold, in their order.
    rules: Arc<[PlacedRule<'a>]>,
    /// The first tag of the line that forbids a return, as the order spells it.
    final_sale_tag: Option<&'a str>,
}

impl<'a> LinePolicy<'a> {
    /// The policy for one unit of the line.
    pub fn unit(&self, facts: UnitFacts<'a>) -> UnitPolicy<'a> {
        let Self { at, rules, final_sale_tag } = self;
        UnitPolicy {
            at: at.clone(),
            facts,
            rules: Arc::clone(rules),
            final_sale_tag: *final_sale_tag,
        }
    }
}

/// The policy for one unit.
#[derive(Debug, Clone)]
pub struct UnitPolicy<'a> {
    at: PolicyAt<'a>,
    facts: UnitFacts<'a>,
    /// The rules whose conditions about the unit hold, in their order.
    rules: Arc<[PlacedRule<'a>]>,
    /// The first tag of the line that forbids a return, as the order spells it.
    final_sale_tag: Option<&'a str>,
}

impl From<&Resolution> for Outcome {
    fn from(resolution: &Resolution) -> Self {
        match resolution {
            Resolution::Refund => Self::Refund,
            Resolution::Exchange { .. } => Self::Exchange,
            Resolution::GiftCard => Self::GiftCard,
        }
    }
}

#[cfg(test)]
mod tests;
