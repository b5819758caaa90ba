//! The units of an order, grouped by the lines of the order.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::printable;
use futures_util::future::try_join_all;
use pages::{
    api::{ApiError, Service},
    path,
};
use serde::Deserialize;

use crate::{
    refusal::{Refusal, last_day},
    visit::Visit,
};

/// Units of one call, and the number of calls for one order.
const PAGE_UNITS: &str = "500";
const MAX_PAGES: usize = 4;

/// An order of the shopper.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) identifier: String,
    pub(crate) currency: String,
    /// Whether units can be exchanged or become a gift card.
    pub(crate) exchange_possible: bool,
    /// The amount paid for units that the shopper keeps already, if a rule limits it; absent for a giftee.
    pub(crate) kept: Option<i64>,
    pub(crate) lines: Vec<Line>,
    /// Whether the order has more units than a page shows.
    pub(crate) is_truncated: bool,
}

/// The units of one line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) order: String,
    pub(crate) identifier: String,
    pub(crate) title: String,
    pub(crate) image_url: Option<String>,
    pub(crate) variant_identifier: Option<String>,
    pub(crate) currency: String,
    /// The price in the shop; a giftee does not see it.
    pub(crate) unit_price: Option<i64>,
    pub(crate) exchange_offered: bool,
    /// The units that can be returned, those with the shortest time first.
    pub(crate) free: Vec<FreeUnit>,
    /// The number of units that cannot be returned by the reason, and the end of their time.
    pub(crate) blocked: BTreeMap<Refusal, (u32, DateTime<Utc>)>,
    /// The amounts that the shopper paid for the units that cannot be returned.
    blocked_paid: Vec<i64>,
    unavailable_methods: Vec<UnavailableMethod>,
    /// The terms by reason, if the merchant has rules.
    pub(crate) choices: Vec<ReasonChoices>,
}

/// A unit that can be returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FreeUnit {
    pub(crate) number: i32,
    /// The end of the time for returns, exclusive.
    pub(crate) until: DateTime<Utc>,
    /// The amount that the shopper paid for it.
    pub(crate) paid: Option<i64>,
}

impl FreeUnit {
    /// A time on the last day on which the unit can be returned.
    pub(crate) fn last_day(&self) -> DateTime<Utc> {
        last_day(self.until)
    }
}

impl Line {
    /// The number of units that can be returned.
    pub(crate) fn free_count(&self) -> u32 {
        u32::try_from(self.free.len()).unwrap_or(u32::MAX)
    }

    /// The amounts paid for units: of those that can be returned, else of the others. Units that have not
    /// shipped have no amount.
    pub(crate) fn paid(&self) -> Vec<i64> {
        match self.free.as_slice() {
            [] => self.blocked_paid.clone(),
            free => free.iter().filter_map(|unit| unit.paid).collect(),
        }
    }

    /// Why the units cannot be returned in this way, whatever the reason and the result.
    pub(crate) fn refusal(&self, method: &str) -> Option<&Refusal> {
        let found = self.unavailable_methods.iter().find(|it| it.method == method);
        found.map(|found| &found.refusal)
    }

    /// Why nothing is possible for a reason: the first refusal, if every result and method has one.
    pub(crate) fn refusal_of_reason(&self, reason: &str) -> Option<&Refusal> {
        let refusals = self.options(reason)?.iter().map(|option| option.ineligible.as_ref());
        let refusals: Vec<_> = refusals.collect::<Option<_>>()?;
        refusals.into_iter().next()
    }

    /// The terms of a reason, by result and method. `None` if the merchant has no rules.
    pub(crate) fn options(&self, reason: &str) -> Option<&[ChoiceOption]> {
        let own = self.choices.iter().find(|it| it.reasons.iter().any(|it| it == reason));
        let all = || self.choices.iter().find(|it| it.reasons.is_empty());
        own.or_else(all).map(|it| it.options.as_slice())
    }
}

#[derive(Debug, Deserialize)]
struct OrderPage {
    order_identifier: String,
    #[serde(default)]
    currency: String,
    #[serde(default)]
    exchange_possible: bool,
    kept_amount_cents: Option<i64>,
    #[serde(default)]
    units: Vec<Unit>,
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Unit {
    order_line_item_identifier: String,
    unit: i32,
    #[serde(default, deserialize_with = "printable::deserialize")]
    title: String,
    image_url: Option<String>,
    variant_identifier: Option<String>,
    unit_price_amount_cents: Option<i64>,
    #[serde(default)]
    returnable: bool,
    ineligible: Option<Refusal>,
    returnable_until: DateTime<Utc>,
    refund_amount_cents: Option<i64>,
    #[serde(default)]
    exchange_offered: bool,
    #[serde(default)]
    unavailable_methods: Vec<UnavailableMethod>,
    #[serde(default)]
    choices: Vec<ReasonChoices>,
}

#[derive(Debug, Clone, Deserialize)]
struct UnavailableMethod {
    method: String,
    #[serde(flatten)]
    refusal: Refusal,
}

/// The terms of reasons.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ReasonChoices {
    /// Empty: every reason that is in no other entry.
    #[serde(default)]
    reasons: Vec<String>,
    options: Vec<ChoiceOption>,
}

/// The terms of a result and a method. Amounts are absent for a giftee.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ChoiceOption {
    pub(crate) outcome: String,
    pub(crate) method: String,
    /// Why this is not possible.
    pub(crate) ineligible: Option<Refusal>,
    pub(crate) return_shipping_cost_cents: Option<i64>,
    /// The rule that caused the cost.
    pub(crate) cost_rule: Option<String>,
    /// The sum of the return up to which the shopper can keep the unit, if all its units are of one order.
    pub(crate) keep_up_to_cents: Option<i64>,
    pub(crate) bonus_percent: Option<i64>,
}

/// Loads orders at the same time.
pub(crate) async fn load_all(visit: &Visit, orders: &[&str]) -> Result<Vec<Order>, ApiError> {
    try_join_all(orders.iter().map(|order| load(visit, order))).await
}

pub(crate) async fn load(visit: &Visit, order: &str) -> Result<Order, ApiError> {
    let path = path!("v1", "orders", order, "returnable");
    let mut units = Vec::new();
    let mut after = String::new();
    for _ in 1..MAX_PAGES {
        let page = load_page(visit, &path, &after).await?;
        let Some(next) = &page.next else { return Ok(group(page, units)) };
        after.clone_from(next);
        units.extend(page.units);
    }
    Ok(group(load_page(visit, &path, &after).await?, units))
}

async fn load_page(visit: &Visit, path: &str, after: &str) -> Result<OrderPage, ApiError> {
    let query = [("limit", PAGE_UNITS), ("after", after)];
    visit.api.get_for(Service::RmaEngine, visit.merchant(), path, &query).await
}

/// The order of its last page and the units of the pages before.
fn group(last: OrderPage, mut units: Vec<Unit>) -> Order {
    let mut order = Order {
        identifier: last.order_identifier,
        currency: last.currency,
        exchange_possible: last.exchange_possible,
        kept: last.kept_amount_cents,
        lines: Vec::new(),
        is_truncated: last.next.is_some(),
    };
    units.extend(last.units);
    let mut positions = BTreeMap::new();
    for unit in units {
        let name = unit.order_line_item_identifier.clone();
        let position = *positions.entry(name).or_insert(order.lines.len());
        if position == order.lines.len() {
            order.lines.push(line(&unit, &order.identifier, &order.currency));
        }
        if let Some(line) = order.lines.get_mut(position) {
            add(line, unit);
        }
    }
    order.lines.iter_mut().for_each(|line| line.free.sort_by_key(|it| (it.until, it.number)));
    order
}

fn line(unit: &Unit, order: &str, currency: &str) -> Line {
    Line {
        order: order.to_owned(),
        identifier: unit.order_line_item_identifier.clone(),
        title: unit.title.clone(),
        image_url: unit.image_url.clone(),
        variant_identifier: unit.variant_identifier.clone(),
        currency: currency.to_owned(),
        unit_price: unit.unit_price_amount_cents,
        exchange_offered: false,
        free: Vec::new(),
        blocked: BTreeMap::new(),
        blocked_paid: Vec::new(),
        unavailable_methods: Vec::new(),
        choices: Vec::new(),
    }
}

fn add(line: &mut Line, unit: Unit) {
    let Unit { unit: number, returnable_until: until, .. } = unit;
    if unit.returnable {
        line.exchange_offered |= unit.exchange_offered && unit.variant_identifier.is_some();
        line.unavailable_methods = unit.unavailable_methods;
        line.choices = unit.choices;
        line.free.push(FreeUnit { number, until, paid: unit.refund_amount_cents });
    } else {
        line.blocked_paid.extend(unit.refund_amount_cents);
        let refusal = unit.ineligible.unwrap_or_default();
        let (count, last) = line.blocked.entry(refusal).or_insert((0, until));
        *count += 1;
        *last = until.max(*last);
    }
}

#[cfg(test)]
pub(crate) mod tests;
