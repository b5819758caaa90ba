//! Previews of a policy: what a draft would decide about an order, or would have decided about the returns of the
//! last 90 days.
//!
//! A request looks at a limited number of returns and for a limited time, and its response has the place to continue
//! from. A merchant has one preview at a time. Orders are parsed and decisions are made outside of the HTTP workers, with
//! a limited number of megabytes of orders in memory.
//!
//! See docs/decisions/return-policies.md.

mod in_progress;
mod loading;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use domain::merchant::{Merchant, Outcome, Settings};
use domain::policy::{
    PolicyAt, PreparedPolicy, ReturnDecision, ReturnTo, UnitFacts, UnitRequest, decide_return,
};
use domain::returns::{Ineligible, Rma};
use platform::Timestamp;
use platform::http::ListOrder;
use serde::Serialize;
use utoipa::ToSchema;

use self::in_progress::{Place, PreviewInProgress};
use crate::App;
use crate::error::Error;
use crate::orders::returnable::ReturnableOrder;
use crate::orders::units::OrderUnits;
use crate::returns::listing::cursor;
use crate::store::orders::RowLock;
use crate::store::search::{Search, search};

pub(crate) use in_progress::Previews;
pub(crate) use loading::{load, order_sizes, parts};

/// Older returns are not looked at.
const PERIOD: TimeDelta = TimeDelta::days(90);
/// Returns that one statement reads.
const CHUNK_RETURNS: i64 = 100;
/// Returns of a response.
const MAX_RETURNS: u64 = 2_000;
/// Changed returns that a response lists.
const MAX_LISTED: usize = 100;
/// Units of the order that a preview shows.
const MAX_UNITS: usize = 200;

/// The decisions about an order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrderPreview {
    /// With the merchant's policy. At most 200 units.
    current: ReturnableOrder,
    /// With the draft.
    draft: ReturnableOrder,
}

/// The decisions about returns of the last 90 days, newest first.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct HistoryPreview {
    /// The number of returns of this response.
    returns: u64,
    /// With the merchant's policy.
    current: Figures,
    /// With the draft.
    draft: Figures,
    /// The first 100 returns of this response that the draft decides differently.
    changes: Vec<ChangedReturn>,
    /// The number of returns of this response that the draft decides differently.
    changed: u64,
    /// Value of `after` for the next request; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The sums of decisions.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Figures {
    /// Returns with a unit that would be refused.
    refused: u64,
    /// Returns that would wait for review.
    reviewed: u64,
    /// The shipping costs of the returns that would not be refused, by currency.
    return_shipping_cost_cents: BTreeMap<String, i64>,
}

/// A return that the draft decides differently.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangedReturn {
    rma_identifier: String,
    created_at: DateTime<Utc>,
    current: PreviewedReturn,
    draft: PreviewedReturn,
}

/// The decision about a return.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct PreviewedReturn {
    /// Why the first unit that is refused cannot be returned; absent if no unit is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ineligible: Option<Ineligible>,
    return_shipping_cost_cents: i64,
    /// The rule that caused the cost; absent for that of the merchant's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cost_rule: Option<String>,
    /// The rule that sends the return to review; absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    review_rule: Option<String>,
    /// The warehouse to which the units go; absent if no rule names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    return_to: Option<ReturnTo>,
}

/// Previews the draft about one order.
pub(crate) async fn of_order(
    app: &App,
    merchant: &Merchant,
    draft: Settings,
    order_identifier: &str,
) -> Result<OrderPreview, Error> {
    let preview = app.previews.start(&merchant.identifier)?;
    let wanted = BTreeSet::from([order_identifier]);
    let conn = app.pool.get().await?;
    let now = app.clock.now();
    let mut units = OrderUnits::load(&conn, &merchant.identifier, &wanted, RowLock::None).await?;
    units.load_shoppers(&conn, &asking_for_both(merchant, &draft), now).await?;
    drop(conn);
    let current = merchant.clone();
    let draft = Merchant { settings: draft, ..merchant.clone() };
    let order = order_identifier.to_owned();
    let decide = move |_: &Place| {
        let show = |merchant: &Merchant| {
            ReturnableOrder::page(&units, &order, merchant, now, (0, MAX_UNITS))
        };
        Ok::<_, Error>(OrderPreview { current: show(&current)?, draft: show(&draft)? })
    };
    preview.run(decide).await?
}

/// Previews the draft about returns of the last 90 days that follow `after`.
pub(crate) async fn of_history(
    app: &App,
    merchant: &Merchant,
    draft: Settings,
    after: Option<(Timestamp, String)>,
) -> Result<HistoryPreview, Error> {
    let in_progress = app.previews.start(&merchant.identifier)?;
    let asking = asking_for_both(merchant, &draft);
    let settings = [merchant.settings.clone(), draft];
    let policies = Arc::new(in_progress.run(move |_| settings.map(PreparedSettings::new)).await?);
    let mut history = History { app, in_progress, asking, policies, preview: Default::default() };
    let mut wanted = Search {
        merchant: Some(merchant.identifier.clone()),
        from: Some(app.clock.now() - PERIOD),
        order: ListOrder::Newest,
        after,
        ..Search::default()
    };
    loop {
        let mut conn = app.pool.reader(Some(merchant.identifier.as_str())).await?;
        let found = search(&mut conn, &wanted, CHUNK_RETURNS).await?;
        drop(conn);
        let is_cut = found.is_truncated;
        let returns: Vec<Rma> = found.returns.into_iter().map(|it| it.rma).collect();
        let Some(last) = returns.last() else { break };
        let is_last = !is_cut && i64::try_from(returns.len()).is_ok_and(|it| it < CHUNK_RETURNS);
        wanted.after = Some((last.created_at, last.rma_identifier.clone()));
        let decided = history.add(&returns).await?;
        let is_ended = decided < returns.len() || (!is_last && history.is_full());
        if is_ended {
            let last = decided.checked_sub(1).and_then(|it| returns.get(it));
            history.preview.next =
                last.map(|rma| cursor(&(rma.created_at, rma.rma_identifier.clone())));
            break;
        }
        if is_last {
            break;
        }
    }
    Ok(history.preview)
}

/// A preview of returns in progress.
struct History<'a> {
    app: &'a App,
    in_progress: PreviewInProgress,
    /// The merchant with the rules of both policies.
    asking: Merchant,
    /// The merchant's policy and the draft.
    policies: Arc<[PreparedSettings; 2]>,
    preview: HistoryPreview,
}

impl History<'_> {
    /// Decides about returns until the time is over. Returns the number of returns with decisions, at least one.
    async fn add(&mut self, returns: &[Rma]) -> Result<usize, Error> {
        let merchant = &self.asking.identifier;
        let sizes = order_sizes(&self.app.pool, merchant, returns).await?;
        let mut added = 0;
        for part in parts(returns, &sizes) {
            if added > 0 && self.is_full() {
                break;
            }
            let decided = self.add_part(part, &sizes).await?;
            added += decided;
            if decided < part.len() {
                break;
            }
        }
        Ok(added)
    }

    /// As [`Self::add`], for returns whose orders are in memory at the same time.
    async fn add_part(
        &mut self,
        returns: &[Rma],
        sizes: &HashMap<String, usize>,
    ) -> Result<usize, Error> {
        let Self { app, in_progress, asking, policies, preview } = self;
        let merchant = &asking.identifier;
        let mut loaded =
            load(&app.pool, &app.previews, in_progress, merchant, returns, sizes).await?;
        if let Some(oldest) = returns.last() {
            let conn = app.pool.reader(Some(merchant.as_str())).await?;
            if asking.settings.policy.limits_keeping() {
                loaded.units.load_returned(&conn, merchant).await?;
            }
            loaded.units.load_shoppers(&conn, asking, oldest.created_at).await?;
        }
        let returns = returns.to_vec();
        let policies = Arc::clone(policies);
        let mut next = mem::take(preview);
        let decide = move |place: &Place| {
            // The whole value, so that its memory is counted as long as the thread works.
            let loaded = loaded;
            let mut decided = 0;
            for rma in &returns {
                if decided > 0 && (place.is_over() || next.returns >= MAX_RETURNS) {
                    break;
                }
                next.add(rma, &loaded.units, &policies);
                decided += 1;
            }
            (next, decided)
        };
        let (next, decided) = in_progress.run(decide).await?;
        *preview = next;
        Ok(decided)
    }

    /// Whether the response has no room or no time for further returns.
    fn is_full(&self) -> bool {
        self.in_progress.is_over() || self.preview.returns >= MAX_RETURNS
    }
}

/// Settings with their rules prepared for many decisions.
struct PreparedSettings {
    settings: Settings,
    policy: Arc<PreparedPolicy>,
}

impl PreparedSettings {
    fn new(settings: Settings) -> Self {
        let policy = Arc::new(PreparedPolicy::new(&settings));
        Self { settings, policy }
    }
}

/// The merchant with the rules of both policies, which ask for facts about shoppers.
fn asking_for_both(merchant: &Merchant, draft: &Settings) -> Merchant {
    let mut both = merchant.clone();
    both.settings.policy.rules.extend(draft.policy.rules.iter().cloned());
    both
}

impl HistoryPreview {
    fn add(
        &mut self,
        rma: &Rma,
        order_units: &OrderUnits,
        [current, draft]: &[PreparedSettings; 2],
    ) {
        self.returns += 1;
        let current = PreviewedReturn::new(rma, order_units, current);
        let draft = PreviewedReturn::new(rma, order_units, draft);
        self.current.add(&current, &rma.currency);
        self.draft.add(&draft, &rma.currency);
        if current == draft {
            return;
        }
        self.changed += 1;
        if self.changes.len() < MAX_LISTED {
            let rma_identifier = rma.rma_identifier.clone();
            let created_at = rma.created_at;
            self.changes.push(ChangedReturn { rma_identifier, created_at, current, draft });
        }
    }
}

impl Figures {
    fn add(&mut self, decided: &PreviewedReturn, currency: &str) {
        if decided.ineligible.is_some() {
            self.refused += 1;
            return;
        }
        self.reviewed += u64::from(decided.review_rule.is_some());
        *self.return_shipping_cost_cents.entry(currency.to_owned()).or_default() +=
            decided.return_shipping_cost_cents;
    }
}

impl PreviewedReturn {
    /// The decision about a stored return at the time when it was started.
    fn new(rma: &Rma, order_units: &OrderUnits, merchant: &PreparedSettings) -> Self {
        let loaded = rma.units.iter().filter_map(|unit| Some((unit, order_units.unit(&unit.id)?)));
        let orders: BTreeSet<_> =
            rma.units.iter().map(|unit| unit.id.order_identifier.as_str()).collect();
        let kept: BTreeMap<_, _> = orders
            .into_iter()
            .map(|order| (order, order_units.kept_before(order, rma.created_at)))
            .collect();
        let requests: Vec<_> = loaded
            .map(|(unit, loaded)| UnitRequest {
                facts: UnitFacts {
                    is_shipped: true,
                    // The unit was in no return yet.
                    rma_identifier: None,
                    is_refunded: false,
                    is_order_exchanged: false,
                    paid_amount_cents: unit.amounts.paid(),
                    order_kept_cents: kept
                        .get(unit.id.order_identifier.as_str())
                        .copied()
                        .unwrap_or_default(),
                    ..loaded.facts()
                },
                reason: &unit.return_reason,
                outcome: Outcome::from(&unit.resolution),
            })
            .collect();
        // The moment before, so that the return itself does not count among the shopper's.
        let before = rma.created_at - TimeDelta::microseconds(1);
        let policy = PolicyAt::prepared(&merchant.settings, &merchant.policy, before);
        let ReturnDecision { units, cost, review, return_to } =
            decide_return(&policy, rma.return_method, &requests, None);
        Self {
            ineligible: units.iter().find_map(|unit| unit.eligibility.clone().err()),
            return_shipping_cost_cents: cost.cents,
            cost_rule: cost.rule.map(|rule| rule.id.clone()),
            review_rule: review.map(|(_, rule)| rule.id.clone()),
            return_to: return_to.map(ReturnTo::from),
        }
    }
}
