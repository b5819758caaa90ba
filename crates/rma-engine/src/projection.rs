//! Projects `order.stored.v1` events: stores the newest snapshot of each order, adds its shipped
//! units to the ledger, and matches its new refunds with returns.
//!
//! Invariant: a repeated snapshot changes nothing, and a late snapshot only adds refunds that no
//! other snapshot had. A snapshot replaces the stored one only if it is not older. A refund is
//! applied only once, whichever snapshot contains it. Among snapshots with the same `updated_at`
//! the event with the higher sequence number is newer, whichever replica handles it first.

mod affected_returns;

use std::collections::{BTreeMap, HashMap};

use affected_returns::AffectedReturns;
use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::order::OrderStored;
use domain::returns::{Discrepancy, RefundMatches, UnitId, match_refunds};
use platform::Timestamp;

use crate::error::Error;
use crate::ledger::Ledger;
use crate::store::orders::{Age, Key, Projected, Rows, StoredOrder};
use crate::store::returns::Held;
use crate::store::{self, discrepancies};

/// Maximum bytes of the ledgers in one batch. A single ledger may be larger.
const MAX_LEDGER_BYTES: usize = 8 * 1024 * 1024;

/// A snapshot and the sequence number of its event at order-intake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot<'a> {
    pub(crate) stored: &'a OrderStored,
    pub(crate) sequence: i64,
}

impl Snapshot<'_> {
    fn age(&self) -> Age {
        (self.stored.order.updated_at, self.sequence)
    }
}

/// Projects snapshots. Snapshots of one order are applied oldest first, so that the newest is
/// stored and refunds that only an older snapshot contains are applied too. Fails with
/// [`Error::LedgersTooLarge`] if the ledgers are too large together; the consumer then retries one
/// by one.
pub(crate) async fn project(
    conn: &mut AsyncPgConnection,
    deliveries: &Deliveries,
    snapshots: impl Iterator<Item = Snapshot<'_>>,
    now: Timestamp,
) -> Result<(), Error> {
    let mut orders = by_order(snapshots);
    let keys: Vec<_> = orders.keys().copied().collect();
    let stored_orders = store::orders::lock_stored(conn, &keys, MAX_LEDGER_BYTES).await?;
    let mut stored_orders = stored_orders.ok_or(Error::LedgersTooLarge)?;
    for (key, snapshots) in &mut orders {
        let Some(StoredOrder { age, ledger }) = stored_orders.get(key) else { continue };
        let has_news = |it: &Snapshot<'_>| ledger.new_refunds(&it.stored.order).next().is_some();
        snapshots.retain(|it| *age <= it.age() || has_news(it));
    }
    orders.retain(|_, snapshots| !snapshots.is_empty());
    // A unit can be in a return only if its order was stored before.
    let known: Vec<_> =
        orders.keys().copied().filter(|key| stored_orders.contains_key(key)).collect();
    let held = store::returns::held(conn, &known).await?;
    let mut batch = ProjectionBatch::open(orders, &mut stored_orders);
    batch.apply(conn, deliveries, &held, now).await?;
    batch.write(conn, now).await
}

/// Reconciles ledgers with the stored snapshots again after units left a return: units that did not
/// ship after all are then removed from the ledger. The caller has locked the orders.
pub(crate) async fn reconcile_again(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    mut orders: Vec<Projected>,
    now: Timestamp,
) -> Result<(), Error> {
    let key = |it: &Projected| (merchant.to_string(), it.order.identifier.clone());
    let keys: Vec<_> = orders.iter().map(key).collect();
    let keys: Vec<Key<'_>> = keys.iter().map(|(owner, it)| (owner.as_str(), it.as_str())).collect();
    let held = store::returns::held(conn, &keys).await?;
    let (mut rows, mut found) = (Rows::default(), Vec::new());
    for Projected { order, sequence, ledger, .. } in &mut orders {
        let before = ledger.clone();
        found.extend(ledger.reconcile(order, |unit| is_held(&held, merchant, unit)));
        if *ledger != before {
            rows.push(merchant, order, *sequence, ledger)?;
        }
    }
    store::orders::update(conn, rows).await?;
    let found: Vec<_> = found.into_iter().map(|it| (merchant, it)).collect();
    Ok(discrepancies::note_once(conn, &found, now).await?)
}

/// Groups snapshots by order, sorted by key so that every transaction locks in the same order. The
/// snapshots of each order are sorted oldest first.
fn by_order<'a>(
    snapshots: impl Iterator<Item = Snapshot<'a>>,
) -> BTreeMap<Key<'a>, Vec<Snapshot<'a>>> {
    let mut orders: BTreeMap<Key<'_>, Vec<_>> = BTreeMap::new();
    for snapshot in snapshots {
        let OrderStored { merchant, order } = snapshot.stored;
        orders.entry((merchant.as_str(), order.identifier.as_str())).or_default().push(snapshot);
    }
    for snapshots in orders.values_mut() {
        snapshots.sort_by_key(Snapshot::age);
    }
    orders
}

/// The orders of one batch with their ledgers, before they are saved.
struct ProjectionBatch<'a> {
    projections: Vec<OrderProjection<'a>>,
    discrepancies: Vec<(&'a MerchantId, Discrepancy)>,
}

struct OrderProjection<'a> {
    /// At least one, oldest first.
    snapshots: Vec<Snapshot<'a>>,
    ledger: Ledger,
    /// Age of the stored snapshot; `None` for a new order.
    stored_age: Option<Age>,
}

impl<'a> ProjectionBatch<'a> {
    fn open(
        orders: BTreeMap<Key<'a>, Vec<Snapshot<'a>>>,
        stored_orders: &mut HashMap<Key<'a>, StoredOrder>,
    ) -> Self {
        let projection = |(key, snapshots): (Key<'a>, Vec<Snapshot<'a>>)| {
            let (stored_age, ledger) =
                stored_orders.remove(&key).map(|it| (it.age, it.ledger)).unzip();
            OrderProjection { snapshots, ledger: ledger.unwrap_or_default(), stored_age }
        };
        Self {
            projections: orders.into_iter().map(projection).collect(),
            discrepancies: Vec::new(),
        }
    }

    /// Reconciles the ledgers with the snapshots, matches new refunds with returns, and announces
    /// the returns that changed.
    async fn apply(
        &mut self,
        conn: &mut AsyncPgConnection,
        deliveries: &Deliveries,
        held: &Held,
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut returns = self.lock_affected(conn).await?;
        for projection in &mut self.projections {
            for snapshot in projection.snapshots.clone() {
                let found = projection.apply(snapshot, held, &mut returns);
                let merchant = &snapshot.stored.merchant;
                self.discrepancies.extend(found.into_iter().map(|it| (merchant, it)));
            }
        }
        returns.record(conn, deliveries, now).await
    }

    /// Locks the returns that new refunds may belong to.
    async fn lock_affected(&self, conn: &mut AsyncPgConnection) -> Result<AffectedReturns, Error> {
        let (mut orders, mut named) = (Vec::new(), Vec::new());
        for projection in &self.projections {
            for Snapshot { stored, .. } in &projection.snapshots {
                let OrderStored { merchant, order } = stored;
                let mut refunds = projection.ledger.new_refunds(order).peekable();
                if refunds.peek().is_some() && projection.stored_age.is_some() {
                    orders.push((merchant.as_str(), order.identifier.as_str()));
                }
                let names = refunds.filter_map(|refund| refund.rma_identifier.as_deref());
                named.extend(names.map(|name| (merchant.as_str(), name)));
            }
        }
        AffectedReturns::lock(conn, &orders, &named).await
    }

    async fn write(self, conn: &mut AsyncPgConnection, now: Timestamp) -> Result<(), Error> {
        let (mut new, mut changed) = (Rows::default(), Rows::default());
        for projection in &self.projections {
            let Some(newest) = projection.snapshots.last() else { continue };
            let Snapshot { stored: OrderStored { merchant, order }, sequence } = newest;
            if projection.is_late(newest) {
                store::orders::update_ledger(conn, merchant, &order.identifier, &projection.ledger)
                    .await?;
                continue;
            }
            let rows = if projection.stored_age.is_none() { &mut new } else { &mut changed };
            rows.push(merchant, order, *sequence, &projection.ledger)?;
        }
        store::orders::update(conn, changed).await?;
        if !store::orders::insert(conn, new).await? {
            return Err(Error::ConcurrentInsert);
        }
        Ok(discrepancies::note_once(conn, &self.discrepancies, now).await?)
    }
}

impl OrderProjection<'_> {
    /// Whether the stored snapshot is newer. Only new refunds of a late snapshot are applied.
    fn is_late(&self, snapshot: &Snapshot<'_>) -> bool {
        self.stored_age.is_some_and(|stored_age| snapshot.age() < stored_age)
    }

    /// Applies one snapshot and returns the discrepancies.
    fn apply(
        &mut self,
        snapshot: Snapshot<'_>,
        held: &Held,
        returns: &mut AffectedReturns,
    ) -> Vec<Discrepancy> {
        let OrderStored { merchant, order } = snapshot.stored;
        let is_returned = |unit: &UnitId| is_held(held, merchant, unit);
        let mut found = Vec::new();
        if !self.is_late(&snapshot) {
            found = self.ledger.reconcile(order, is_returned);
        }
        let new: Vec<_> = self.ledger.new_refunds(order).collect();
        if new.is_empty() {
            return found;
        }
        let names: Vec<_> = new.iter().filter_map(|it| it.rma_identifier.as_deref()).collect();
        let units = self.ledger.known_units(&order.identifier, is_returned);
        let before = self.ledger.paid_before();
        let affected = returns.of(merchant, &order.identifier, &names);
        let RefundMatches { refunded_units, discrepancies } =
            match_refunds(order, &before, affected, &units);
        found.extend(discrepancies);
        for refund in new {
            self.ledger.settle(refund);
        }
        self.ledger.cover(&refunded_units);
        returns.cover(merchant, refunded_units);
        found
    }
}

fn is_held(held: &Held, merchant: &MerchantId, unit: &UnitId) -> bool {
    held.get(merchant.as_str()).is_some_and(|units| units.contains_key(unit))
}
