//! Orders as they come in: the newest snapshot of each is kept, its units are put on the ledger,
//! and its new refunds are matched with returns.
//!
//! The invariant: whatever comes twice changes nothing, and what comes late changes nothing but what
//! only it knows. A snapshot counts only when it is not older than the one that is kept, and a
//! refund only when it was not matched before, whichever snapshot has it. Of two with the same
//! `updated_at` the later event has the newer one, whichever replica is faster.

mod concerned;

use std::collections::{BTreeMap, HashMap};

use concerned::Concerned;
use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::order::OrderStored;
use domain::returns::{Discrepancy, RefundMatches, UnitId, match_refunds};
use platform::Timestamp;

use crate::error::Error;
use crate::ledger::Ledger;
use crate::store::orders::{Age, Kept, Key, Projected, Rows};
use crate::store::returns::Held;
use crate::store::{self, discrepancies};

/// The ledgers of so many bytes are read at once, unless a single one has more.
const MOST_LEDGERS: usize = 8 * 1024 * 1024;

/// A snapshot, and the place of its event among those of the intake.
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

/// Takes snapshots in. Several of one order are taken in one after the other, the oldest first:
/// the newest stays, and no refund is passed over that only an older one has. Orders with much on
/// their ledgers are refused together and taken one by one.
pub(crate) async fn project(
    conn: &mut AsyncPgConnection,
    deliveries: &Deliveries,
    snapshots: impl Iterator<Item = Snapshot<'_>>,
    now: Timestamp,
) -> Result<(), Error> {
    let mut orders = by_order(snapshots);
    let keys: Vec<_> = orders.keys().copied().collect();
    let kept = store::orders::lock_kept(conn, &keys, MOST_LEDGERS).await?;
    let mut kept = kept.ok_or(Error::TooHeavy)?;
    for (key, snapshots) in &mut orders {
        let Some(Kept { age, ledger }) = kept.get(key) else { continue };
        let has_news = |it: &Snapshot<'_>| ledger.new_refunds(&it.stored.order).next().is_some();
        snapshots.retain(|it| *age <= it.age() || has_news(it));
    }
    orders.retain(|_, snapshots| !snapshots.is_empty());
    // A unit can be in a return only when its order was there before.
    let known: Vec<_> = orders.keys().copied().filter(|key| kept.contains_key(key)).collect();
    let held = store::returns::held(conn, &known).await?;
    let mut books = Books::open(orders, &mut kept);
    books.take_in(conn, deliveries, &held, now).await?;
    books.write(conn, now).await
}

/// Takes in what orders already said, after units of theirs came free: one that only a return kept
/// on the ledger leaves it. The orders are locked.
pub(crate) async fn follow_again(
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
        found.extend(ledger.follow(order, |unit| is_held(&held, merchant, unit)));
        if *ledger != before {
            rows.push(merchant, order, *sequence, ledger)?;
        }
    }
    store::orders::update(conn, rows).await?;
    let found: Vec<_> = found.into_iter().map(|it| (merchant, it)).collect();
    Ok(discrepancies::note_once(conn, &found, now).await?)
}

/// Sorted by key, so that everyone locks in the same order; of each order the oldest first.
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

/// The orders of one batch with their ledgers, until they are written.
struct Books<'a> {
    pages: Vec<Page<'a>>,
    discrepancies: Vec<(&'a MerchantId, Discrepancy)>,
}

struct Page<'a> {
    /// At least one, the oldest first.
    snapshots: Vec<Snapshot<'a>>,
    ledger: Ledger,
    /// Of the snapshot that is kept; none when the order is new.
    kept: Option<Age>,
}

impl<'a> Books<'a> {
    fn open(
        orders: BTreeMap<Key<'a>, Vec<Snapshot<'a>>>,
        kept: &mut HashMap<Key<'a>, Kept>,
    ) -> Self {
        let page = |(key, snapshots): (Key<'a>, Vec<Snapshot<'a>>)| {
            let (kept, ledger) = kept.remove(&key).map(|it| (it.age, it.ledger)).unzip();
            Page { snapshots, ledger: ledger.unwrap_or_default(), kept }
        };
        Self { pages: orders.into_iter().map(page).collect(), discrepancies: Vec::new() }
    }

    /// Brings the ledgers in line with the snapshots, matches the refunds that were not seen
    /// before, and tells of the returns they settle.
    async fn take_in(
        &mut self,
        conn: &mut AsyncPgConnection,
        deliveries: &Deliveries,
        held: &Held,
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut returns = self.concerned(conn).await?;
        for page in &mut self.pages {
            for snapshot in page.snapshots.clone() {
                let found = page.take_in(snapshot, held, &mut returns);
                let merchant = &snapshot.stored.merchant;
                self.discrepancies.extend(found.into_iter().map(|it| (merchant, it)));
            }
        }
        returns.record(conn, deliveries, now).await
    }

    /// Locks the returns that new refunds may be for.
    async fn concerned(&self, conn: &mut AsyncPgConnection) -> Result<Concerned, Error> {
        let (mut orders, mut named) = (Vec::new(), Vec::new());
        for page in &self.pages {
            for Snapshot { stored, .. } in &page.snapshots {
                let OrderStored { merchant, order } = stored;
                let mut refunds = page.ledger.new_refunds(order).peekable();
                if refunds.peek().is_some() && page.kept.is_some() {
                    orders.push((merchant.as_str(), order.identifier.as_str()));
                }
                let names = refunds.filter_map(|refund| refund.rma_identifier.as_deref());
                named.extend(names.map(|name| (merchant.as_str(), name)));
            }
        }
        Concerned::lock(conn, &orders, &named).await
    }

    async fn write(self, conn: &mut AsyncPgConnection, now: Timestamp) -> Result<(), Error> {
        let (mut new, mut changed) = (Rows::default(), Rows::default());
        for page in &self.pages {
            let Some(newest) = page.snapshots.last() else { continue };
            let Snapshot { stored: OrderStored { merchant, order }, sequence } = newest;
            if page.is_late(newest) {
                store::orders::update_ledger(conn, merchant, &order.identifier, &page.ledger)
                    .await?;
                continue;
            }
            let rows = if page.kept.is_none() { &mut new } else { &mut changed };
            rows.push(merchant, order, *sequence, &page.ledger)?;
        }
        store::orders::update(conn, changed).await?;
        if !store::orders::insert(conn, new).await? {
            return Err(Error::Raced);
        }
        Ok(discrepancies::note_once(conn, &self.discrepancies, now).await?)
    }
}

impl Page<'_> {
    /// Whether a newer snapshot is kept: then all that counts are refunds that only this one has.
    fn is_late(&self, snapshot: &Snapshot<'_>) -> bool {
        self.kept.is_some_and(|kept| snapshot.age() < kept)
    }

    /// Takes one snapshot in; says what does not fit.
    fn take_in(
        &mut self,
        snapshot: Snapshot<'_>,
        held: &Held,
        returns: &mut Concerned,
    ) -> Vec<Discrepancy> {
        let OrderStored { merchant, order } = snapshot.stored;
        let is_returned = |unit: &UnitId| is_held(held, merchant, unit);
        let mut found = Vec::new();
        if !self.is_late(&snapshot) {
            found = self.ledger.follow(order, is_returned);
        }
        let new: Vec<_> = self.ledger.new_refunds(order).collect();
        if new.is_empty() {
            return found;
        }
        let names: Vec<_> = new.iter().filter_map(|it| it.rma_identifier.as_deref()).collect();
        let units = self.ledger.known_units(&order.identifier, is_returned);
        let before = self.ledger.paid_before();
        let concerned = returns.of(merchant, &order.identifier, &names);
        let RefundMatches { refunded_units, discrepancies } =
            match_refunds(order, &before, concerned, &units);
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
