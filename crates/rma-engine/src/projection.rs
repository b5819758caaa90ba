//! Orders as they come in: the newest snapshot of each is kept, its units are put on the ledger,
//! and its new refunds are matched with returns.
//!
//! The invariant: whatever comes twice or late changes nothing. A snapshot counts only when it is
//! not older than the one that is kept, and a refund only when it was not matched before.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::event::Event as _;
use domain::order::{Order, OrderStored, Refund};
use domain::returns::{
    Change, CoveredUnit, Discrepancy, LooseUnit, RefundMatches, Rma, UnitId, match_refunds,
};
use platform::Timestamp;
use serde_json::json;

use crate::chronicle::{self, Cause};
use crate::error::Error;
use crate::ledger::Ledger;
use crate::store::orders::{Kept, Key, Projected, Rows};
use crate::store::returns::Held;
use crate::store::{self, discrepancies};

/// Takes snapshots in; of several of one order the newest counts.
pub(crate) async fn project(
    conn: &mut AsyncPgConnection,
    deliveries: &Deliveries,
    snapshots: impl Iterator<Item = &OrderStored>,
    now: Timestamp,
) -> Result<(), Error> {
    let newest = newest(snapshots);
    let keys: Vec<_> = newest.keys().copied().collect();
    let mut kept = store::orders::lock_kept(conn, &keys).await?;
    let current = |(key, it): &(Key<'_>, &OrderStored)| {
        kept.get(key).is_none_or(|kept| kept.updated_at <= it.order.updated_at)
    };
    let newest: Vec<_> = newest.into_iter().filter(current).collect();
    // A unit can be in a return only when its order was there before.
    let known: Vec<_> = newest.iter().map(|it| it.0).filter(|key| kept.contains_key(key)).collect();
    let held = store::returns::held(conn, &known).await?;
    let mut books = Books::open(&newest, &mut kept, &held);
    books.match_refunds(conn, deliveries, &held, now).await?;
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
    for Projected { order, ledger, .. } in &mut orders {
        let before = ledger.clone();
        found.extend(ledger.follow(order, |unit| is_held(&held, merchant, unit)));
        if *ledger != before {
            rows.push(merchant, order, ledger)?;
        }
    }
    store::orders::update(conn, rows).await?;
    let found: Vec<_> = found.into_iter().map(|it| (merchant, it)).collect();
    Ok(discrepancies::note_once(conn, &found, now).await?)
}

/// Sorted by key, so that everyone locks in the same order.
fn newest<'a>(
    snapshots: impl Iterator<Item = &'a OrderStored>,
) -> BTreeMap<Key<'a>, &'a OrderStored> {
    let mut newest: BTreeMap<Key<'_>, &OrderStored> = BTreeMap::new();
    for snapshot in snapshots {
        let key = (snapshot.merchant.as_str(), snapshot.order.identifier.as_str());
        let slot = newest.entry(key).or_insert(snapshot);
        if slot.order.updated_at <= snapshot.order.updated_at {
            *slot = snapshot;
        }
    }
    newest
}

/// The orders of one batch with their ledgers, until they are written.
struct Books<'a> {
    pages: Vec<Page<'a>>,
    discrepancies: Vec<(&'a MerchantId, Discrepancy)>,
}

struct Page<'a> {
    merchant: &'a MerchantId,
    order: &'a Order,
    ledger: Ledger,
    is_new: bool,
}

impl<'a> Books<'a> {
    fn open(
        newest: &[(Key<'a>, &'a OrderStored)],
        kept: &mut HashMap<Key<'a>, Kept>,
        held: &Held,
    ) -> Self {
        let mut books = Self { pages: Vec::with_capacity(newest.len()), discrepancies: Vec::new() };
        for (key, snapshot) in newest {
            let OrderStored { merchant, order } = snapshot;
            let known = kept.remove(key);
            let is_new = known.is_none();
            let mut ledger = known.map(|kept| kept.ledger).unwrap_or_default();
            let found = ledger.follow(order, |unit| is_held(held, merchant, unit));
            books.discrepancies.extend(found.into_iter().map(|it| (merchant, it)));
            books.pages.push(Page { merchant, order, ledger, is_new });
        }
        books
    }

    /// Matches the refunds that were not seen before and tells of the returns they settle.
    async fn match_refunds(
        &mut self,
        conn: &mut AsyncPgConnection,
        deliveries: &Deliveries,
        held: &Held,
        now: Timestamp,
    ) -> Result<(), Error> {
        let refunded: Vec<_> =
            self.pages.iter_mut().filter(|page| page.new_refunds().next().is_some()).collect();
        if refunded.is_empty() {
            return Ok(());
        }
        let orders: Vec<_> =
            refunded.iter().filter(|page| !page.is_new).map(|it| it.key()).collect();
        let named: Vec<_> = refunded.iter().flat_map(|page| page.named_returns()).collect();
        let concerned = store::returns::lock_concerned(conn, &orders, &named).await?;
        let mut returns = Returns::new(concerned);
        for page in refunded {
            let RefundMatches { covered, discrepancies } = page.match_refunds(&returns, held);
            self.discrepancies.extend(discrepancies.into_iter().map(|it| (page.merchant, it)));
            page.remember_refunds(&covered);
            returns.cover(page.merchant, &covered, now)?;
        }
        for ((merchant, _), (rma, change)) in returns.0 {
            let merchant = merchant.parse().map_err(|_damaged| Error::Damaged("merchant"))?;
            let cause = Cause { actor: OrderStored::TYPE, what: "refund", detail: json!({}) };
            chronicle::record(conn, deliveries, &merchant, &rma, &change, cause, now).await?;
        }
        Ok(())
    }

    async fn write(self, conn: &mut AsyncPgConnection, now: Timestamp) -> Result<(), Error> {
        let (mut new, mut changed) = (Rows::default(), Rows::default());
        for Page { merchant, order, ledger, is_new } in &self.pages {
            let rows = if *is_new { &mut new } else { &mut changed };
            rows.push(merchant, order, ledger)?;
        }
        store::orders::update(conn, changed).await?;
        if !store::orders::insert(conn, new).await? {
            return Err(Error::Raced);
        }
        Ok(discrepancies::note_once(conn, &self.discrepancies, now).await?)
    }
}

impl<'a> Page<'a> {
    fn key(&self) -> Key<'a> {
        (self.merchant.as_str(), self.order.identifier.as_str())
    }

    fn new_refunds(&self) -> impl Iterator<Item = &'a Refund> {
        let seen = |refund: &&Refund| self.ledger.refunds.contains(&refund.identifier);
        self.order.refunds.iter().filter(|it| !it.is_ignored()).filter(move |it| !seen(it))
    }

    /// The returns that its new refunds name.
    fn named_returns(&self) -> impl Iterator<Item = Key<'a>> {
        let names = self.new_refunds().filter_map(|refund| refund.rma_identifier.as_deref());
        names.map(|name| (self.merchant.as_str(), name))
    }

    fn match_refunds(&self, returns: &Returns, held: &Held) -> RefundMatches {
        let names: Vec<_> = self.named_returns().map(|(_, name)| name).collect();
        let concerns = |rma: &&Rma| {
            names.contains(&rma.rma_identifier.as_str())
                || rma.units.iter().any(|it| it.id.order_identifier == self.order.identifier)
        };
        let concerned: Vec<_> = returns.of(self.merchant).filter(concerns).cloned().collect();
        let loose: Vec<_> = self
            .ledger
            .all(&self.order.identifier)
            .filter(|(id, _)| !is_held(held, self.merchant, id))
            .map(|(id, unit)| LooseUnit { id, refunded_by: unit.refund.clone() })
            .collect();
        let is_seen = |refund: &str| self.ledger.refunds.contains(refund);
        match_refunds(self.order, is_seen, &concerned, &loose)
    }

    fn remember_refunds(&mut self, covered: &[CoveredUnit]) {
        let new: Vec<_> = self.new_refunds().map(|refund| refund.identifier.clone()).collect();
        self.ledger.refunds.extend(new);
        for CoveredUnit { refund_identifier, unit, .. } in covered {
            self.ledger.refund(unit, refund_identifier);
        }
    }
}

/// The returns that a batch of orders concerns.
struct Returns(BTreeMap<(String, String), (Rma, Change)>);

impl Returns {
    fn new(concerned: Vec<(String, Rma)>) -> Self {
        let entry = |(merchant, rma): (String, Rma)| {
            ((merchant, rma.rma_identifier.clone()), (rma, Change::default()))
        };
        Self(concerned.into_iter().map(entry).collect())
    }

    fn of(&self, merchant: &MerchantId) -> impl Iterator<Item = &Rma> {
        let own = self.0.iter().filter(|((owner, _), _)| owner == merchant.as_str());
        own.map(|(_, (rma, _))| rma)
    }

    fn cover(
        &mut self,
        merchant: &MerchantId,
        covered: &[CoveredUnit],
        now: Timestamp,
    ) -> Result<(), Error> {
        let names: BTreeSet<_> =
            covered.iter().filter_map(|it| it.rma_identifier.clone()).collect();
        for name in names {
            let key = (merchant.to_string(), name);
            let Some((rma, all)) = self.0.get_mut(&key) else { continue };
            let refused = |refusal| Error::Refused(key.1.clone(), refusal);
            let change = rma.refund(covered, now).map_err(refused)?;
            all.event = all.event.or(change.event);
            all.units.extend(change.units);
            all.late.extend(change.late);
            all.discrepancies.extend(change.discrepancies);
        }
        Ok(())
    }
}

fn is_held(held: &Held, merchant: &MerchantId, unit: &UnitId) -> bool {
    held.get(merchant.as_str()).is_some_and(|units| units.contains_key(unit))
}
