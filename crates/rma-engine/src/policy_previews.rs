//! Previews of a policy: what a draft would decide about an order, or would have decided about the returns of the
//! last 90 days.
//!
//! A request looks at a limited number of returns and for a limited time, and its response has the place to continue
//! from. A merchant has one preview at a time. Decisions are made outside of the HTTP workers.
//!
//! See docs/decisions/return-policies.md.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::access::MerchantId;
use domain::merchant::{Merchant, Outcome, Settings};
use domain::policy::{PolicyAt, ReturnDecision, UnitFacts, UnitRequest, decide_return};
use domain::returns::{Ineligible, Rma};
use platform::Timestamp;
use platform::http::ListOrder;
use serde::Serialize;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::App;
use crate::error::Error;
use crate::orders::returnable::ReturnableOrder;
use crate::orders::units::OrderUnits;
use crate::returns::listing::cursor;
use crate::store::orders::RowLock;
use crate::store::search::{Search, search};

/// Older returns are not looked at.
const PERIOD: TimeDelta = TimeDelta::days(90);
/// Returns whose orders are in memory at the same time.
const CHUNK_RETURNS: i64 = 100;
/// Returns of a response.
const MAX_RETURNS: u64 = 2_000;
/// Changed returns that a response lists.
const MAX_LISTED: usize = 100;
/// A response looks at no further returns after this time.
const MAX_DURATION: Duration = Duration::from_secs(2);
/// Units of the order that a preview shows.
const MAX_UNITS: usize = 200;

/// The merchants with a preview in progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct Previews(Arc<Mutex<HashSet<MerchantId>>>);

/// A preview in progress.
pub(crate) struct PreviewInProgress<'a> {
    previews: &'a Previews,
    merchant: &'a MerchantId,
}

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
    /// The first 100 returns of this response about which the draft decides something else.
    changes: Vec<ChangedReturn>,
    /// The number of returns of this response about which the draft decides something else.
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

/// A return about which the draft decides something else.
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
}

impl Previews {
    /// Starts the preview of a merchant. Fails while it has another one.
    pub(crate) fn start<'a>(
        &'a self,
        merchant: &'a MerchantId,
    ) -> Result<PreviewInProgress<'a>, Error> {
        let mut merchants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !merchants.insert(merchant.clone()) {
            return Err(Error::PreviewInProgress);
        }
        Ok(PreviewInProgress { previews: self, merchant })
    }
}

impl Drop for PreviewInProgress<'_> {
    fn drop(&mut self) {
        let mut merchants = self.previews.0.lock().unwrap_or_else(PoisonError::into_inner);
        merchants.remove(self.merchant);
    }
}

/// Previews the draft about one order.
pub(crate) async fn of_order(
    app: &App,
    merchant: &Merchant,
    draft: Settings,
    order_identifier: &str,
) -> Result<OrderPreview, Error> {
    let wanted = BTreeSet::from([order_identifier]);
    let conn = app.pool.get().await?;
    let now = app.clock.now();
    let mut units = OrderUnits::load(&conn, &merchant.identifier, &wanted, RowLock::None).await?;
    units.load_shoppers(&conn, &asking_for_both(merchant, &draft), now).await?;
    let draft = Merchant { settings: draft, ..merchant.clone() };
    let show = |merchant: &Merchant| {
        ReturnableOrder::page(&units, order_identifier, merchant, now, (0, MAX_UNITS))
    };
    Ok(OrderPreview { current: show(merchant)?, draft: show(&draft)? })
}

/// Previews the draft about returns of the last 90 days that follow `after`.
pub(crate) async fn of_history(
    app: &App,
    merchant: &Merchant,
    draft: Settings,
    after: Option<(Timestamp, String)>,
) -> Result<HistoryPreview, Error> {
    let _in_progress = app.previews.start(&merchant.identifier)?;
    let asking = asking_for_both(merchant, &draft);
    let settings = Arc::new((merchant.settings.clone(), draft));
    let started_at = Instant::now();
    let mut wanted = Search {
        merchant: Some(merchant.identifier.clone()),
        from: Some(app.clock.now() - PERIOD),
        order: ListOrder::Newest,
        after,
        ..Search::default()
    };
    let mut preview = HistoryPreview::default();
    loop {
        // A connection for each chunk, so that other readers get theirs between chunks.
        let mut conn = app.pool.reader(Some(merchant.identifier.as_str())).await?;
        let (returns, is_cut) = search(&mut conn, &wanted, CHUNK_RETURNS).await?;
        let Some(last) = returns.last() else { break };
        let is_last = !is_cut && i64::try_from(returns.len()).is_ok_and(|it| it < CHUNK_RETURNS);
        let next = cursor(last);
        let oldest = last.created_at;
        wanted.after = Some((last.created_at, last.rma_identifier.clone()));
        let units = returns.iter().flat_map(|rma| &rma.units);
        let orders = units.map(|unit| unit.id.order_identifier.as_str()).collect();
        let mut order_units =
            OrderUnits::load(&conn, &merchant.identifier, &orders, RowLock::None).await?;
        order_units.load_shoppers(&conn, &asking, oldest).await?;
        drop(conn);
        let both = Arc::clone(&settings);
        let decide = move || {
            let mut preview = preview;
            preview.add(&returns, &order_units, &both);
            preview
        };
        preview =
            spawn_blocking(decide).await.map_err(|error| Error::Internal(error.to_string()))?;
        if is_last {
            break;
        }
        if preview.returns >= MAX_RETURNS || started_at.elapsed() > MAX_DURATION {
            preview.next = Some(next);
            break;
        }
    }
    Ok(preview)
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
        returns: &[Rma],
        order_units: &OrderUnits,
        (current, draft): &(Settings, Settings),
    ) {
        for rma in returns {
            self.returns += 1;
            let current = PreviewedReturn::new(rma, order_units, current);
            let draft = PreviewedReturn::new(rma, order_units, draft);
            self.current.add(&current, &rma.currency);
            self.draft.add(&draft, &rma.currency);
            if current == draft {
                continue;
            }
            self.changed += 1;
            if self.changes.len() < MAX_LISTED {
                let rma_identifier = rma.rma_identifier.clone();
                let created_at = rma.created_at;
                self.changes.push(ChangedReturn { rma_identifier, created_at, current, draft });
            }
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
    fn new(rma: &Rma, order_units: &OrderUnits, settings: &Settings) -> Self {
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
        let policy = PolicyAt::new(settings, before);
        let ReturnDecision { units, cost, review } =
            decide_return(&policy, rma.return_method, &requests, None);
        Self {
            ineligible: units.iter().find_map(|unit| unit.eligibility.clone().err()),
            return_shipping_cost_cents: cost.cents,
            cost_rule: cost.rule.map(|rule| rule.id.clone()),
            review_rule: review.map(|(_, rule)| rule.id.clone()),
        }
    }
}
