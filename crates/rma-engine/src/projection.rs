//! Projects `order.stored.v1` events: stores the newest snapshot of each order, adds its shipped
//! units, and matches its new refunds with returns.
//!
//! Invariant: a repeated snapshot changes nothing, and a late snapshot only adds refunds that no other snapshot
//! had. A snapshot replaces the stored one only if it is not older, or if an operator reset the order after it.
//! A snapshot from the future (its `updated_at` is later than its event) never replaces one of a later event. A refund
//! is applied only once, whichever snapshot contains it. Among snapshots with the same `updated_at` the event with the
//! higher sequence number is newer, whichever replica handles it first.

pub(crate) mod order;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use api::returns::DiscrepancyResolution;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::event::Event as _;
use domain::order::OrderStored;
use domain::returns::Discrepancy;
use platform::Timestamp;
use serde_json::json;

use self::order::{OrderProjection, Snapshot};
use crate::error::Error;
use crate::messages::Messages;
use crate::refunds::affected::AffectedReturns;
use crate::return_changes::Cause;
use crate::store::order_rows::Rows;
use crate::store::orders::{Projected, ResourceKey, StoredOrder};
use crate::store::units::{Held, is_held};
use crate::store::{self, discrepancies};

/// Projects snapshots. Snapshots of one order are applied oldest first, so that the newest is
/// stored and refunds that only an older snapshot contains are applied too. Fails with
/// [`Error::BatchTooLarge`] if the stored units, or the returns that new refunds may belong to, have more than
/// `max_bytes` together.
pub(crate) async fn project(
    conn: &mut AsyncPgConnection,
    messages: &Messages,
    snapshots: impl Iterator<Item = Snapshot<'_>>,
    max_bytes: usize,
    now: Timestamp,
) -> Result<(), Error> {
    let mut orders = by_order(snapshots);
    let keys: Vec<_> = orders.keys().copied().collect();
    let stored_orders = store::orders::lock_stored(conn, &keys, max_bytes).await?;
    let mut stored_orders = stored_orders.ok_or(Error::BatchTooLarge)?;
    for (key, snapshots) in &mut orders {
        let Some(stored) = stored_orders.get_mut(key) else { continue };
        // A reset replaces the stored snapshot, and later snapshots are compared with the reset.
        if let Some(reset) = snapshots.iter().rfind(|it| it.resets(stored.version)) {
            stored.version = reset.version();
        }
        let has_changes = |it: &Snapshot<'_>| {
            it.stored_at < stored.stored_at
                || stored.shipped_units.new_refunds(&it.event.order).next().is_some()
        };
        snapshots.retain(|it| !it.is_older_than(stored.version) || has_changes(it));
    }
    orders.retain(|_, snapshots| !snapshots.is_empty());
    // A unit can be in a return only if its order was stored before.
    let stored: Vec<_> =
        orders.keys().copied().filter(|key| stored_orders.contains_key(key)).collect();
    let held = store::units::held(conn, &stored).await?;
    let mut batch = ProjectionBatch::open(orders, &mut stored_orders, max_bytes);
    batch.apply(conn, messages, &held, now).await?;
    batch.write(conn, now).await
}

/// Reconciles units with the stored snapshots again after units left a return: units that did not
/// ship after all are then removed. The caller has locked the orders.
pub(crate) async fn reconcile_again(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    mut orders: Vec<Projected>,
    now: Timestamp,
) -> Result<(), Error> {
    let key = |it: &Projected| (merchant.to_string(), it.order.identifier.clone());
    let keys: Vec<_> = orders.iter().map(key).collect();
    let keys: Vec<ResourceKey<'_>> =
        keys.iter().map(|(owner, it)| (owner.as_str(), it.as_str())).collect();
    let held = store::units::held(conn, &keys).await?;
    let mut rows = Rows::default();
    let mut found = Vec::new();
    for Projected { order, sequence, shipped_units, stored_at, .. } in &mut orders {
        let before = shipped_units.clone();
        found.extend(shipped_units.reconcile(order, |unit| is_held(&held, merchant, unit)));
        if *shipped_units != before {
            rows.push(merchant, order, *sequence, shipped_units, *stored_at)?;
        }
    }
    store::order_rows::update(conn, rows).await?;
    let found: Vec<_> = found.into_iter().map(|it| (merchant, it)).collect();
    Ok(discrepancies::record_once(conn, &found, now).await?)
}

/// Groups snapshots by order, sorted by key so that every transaction locks in the same order. The
/// snapshots of each order are sorted oldest first.
fn by_order<'a>(
    snapshots: impl Iterator<Item = Snapshot<'a>>,
) -> BTreeMap<ResourceKey<'a>, Vec<Snapshot<'a>>> {
    let mut orders: BTreeMap<ResourceKey<'_>, Vec<_>> = BTreeMap::new();
    for snapshot in snapshots {
        let OrderStored { merchant, order, .. } = snapshot.event;
        orders.entry((merchant.as_str(), order.identifier.as_str())).or_default().push(snapshot);
    }
    for snapshots in orders.values_mut() {
        snapshots.sort_by_key(Snapshot::version);
        if snapshots.iter().any(|it| it.event.is_reset || it.is_from_the_future()) {
            snapshots.sort_by_key(|it| it.sequence);
        }
    }
    orders
}

/// The orders of one batch with their units, before they are saved.
struct ProjectionBatch<'a> {
    projections: Vec<OrderProjection<'a>>,
    discrepancies: Vec<(&'a MerchantId, Discrepancy)>,
    max_bytes: usize,
}

impl<'a> ProjectionBatch<'a> {
    fn open(
        orders: BTreeMap<ResourceKey<'a>, Vec<Snapshot<'a>>>,
        stored_orders: &mut HashMap<ResourceKey<'a>, StoredOrder>,
        max_bytes: usize,
    ) -> Self {
        let projection = |(key, snapshots): (ResourceKey<'a>, Vec<Snapshot<'a>>)| {
            let stored = stored_orders.remove(&key);
            let times = snapshots.iter().map(|it| it.stored_at);
            let stored_at = times.chain(stored.as_ref().map(|it| it.stored_at)).min()?;
            let (stored_version, shipped_units) =
                stored.map(|it| (it.version, it.shipped_units)).unzip();
            Some(OrderProjection {
                snapshots,
                shipped_units: shipped_units.unwrap_or_default(),
                stored_version,
                stored_at,
                corrected: BTreeSet::new(),
            })
        };
        Self {
            projections: orders.into_iter().filter_map(projection).collect(),
            discrepancies: Vec::new(),
            max_bytes,
        }
    }

    /// Reconciles the units with the snapshots, matches new refunds with returns, and announces
    /// the returns that changed.
    async fn apply(
        &mut self,
        conn: &mut AsyncPgConnection,
        messages: &Messages,
        held: &Held,
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut returns = self.lock_affected(conn).await?;
        for projection in &mut self.projections {
            for snapshot in projection.snapshots.clone() {
                let applied = projection.apply(snapshot, held, &mut returns);
                let OrderStored { merchant, order, .. } = snapshot.event;
                // Refunds of earlier snapshots of the batch that this snapshot corrects.
                let is_corrected = |it: &Discrepancy| match it {
                    Discrepancy::RefundOfUnknownReturn {
                        order_identifier,
                        refund_identifier,
                        ..
                    } => {
                        *order_identifier == order.identifier
                            && applied.corrected.contains(refund_identifier.as_str())
                    }
                    _ => false,
                };
                self.discrepancies.retain(|(owner, it)| *owner != merchant || !is_corrected(it));
                self.discrepancies
                    .extend(applied.discrepancies.into_iter().map(|it| (merchant, it)));
            }
        }
        let cause = Cause { actor: OrderStored::TYPE, action: "refund", detail: json!({}) };
        returns.record(conn, messages, &cause, now).await
    }

    /// Locks the returns that new refunds may belong to.
    async fn lock_affected(&self, conn: &mut AsyncPgConnection) -> Result<AffectedReturns, Error> {
        let mut orders = Vec::new();
        let mut named = Vec::new();
        for projection in &self.projections {
            for snapshot in &projection.snapshots {
                let OrderStored { merchant, order, .. } = snapshot.event;
                let refunds = projection.unapplied_refunds(snapshot);
                if !refunds.is_empty() && projection.stored_version.is_some() {
                    orders.push((merchant.as_str(), order.identifier.as_str()));
                }
                let names = refunds.iter().filter_map(|refund| refund.rma_identifier.as_deref());
                named.extend(names.map(|name| (merchant.as_str(), name)));
            }
        }
        AffectedReturns::lock(conn, &orders, &named, self.max_bytes).await
    }

    /// Saves orders and units, resolves the discrepancies of corrected refunds and records the new ones. A
    /// late snapshot changes only the units and the time of the first event.
    async fn write(self, conn: &mut AsyncPgConnection, now: Timestamp) -> Result<(), Error> {
        let mut new = Rows::default();
        let mut changed = Rows::default();
        for projection in &self.projections {
            let Some(newest) = projection.snapshots.last() else { continue };
            let Snapshot { event: OrderStored { merchant, order, .. }, sequence, .. } = newest;
            let units = &projection.shipped_units;
            let stored_at = projection.stored_at;
            if projection.is_late(newest) {
                let identifier = &order.identifier;
                store::orders::update_units(conn, merchant, identifier, units, stored_at).await?;
                continue;
            }
            let rows = if projection.stored_version.is_none() { &mut new } else { &mut changed };
            rows.push(merchant, order, *sequence, units, stored_at)?;
        }
        store::order_rows::update(conn, changed).await?;
        if !store::order_rows::insert(conn, new).await? {
            return Err(Error::ConcurrentInsert);
        }
        for OrderProjection { snapshots, corrected, .. } in &self.projections {
            let Some(Snapshot { event: OrderStored { merchant, order, .. }, .. }) =
                snapshots.last()
            else {
                continue;
            };
            let resolution = DiscrepancyResolution {
                at: now,
                by: OrderStored::TYPE.to_owned(),
                note: "the refund now names another return".to_owned(),
                rma_identifier: None,
            };
            let refunds: Vec<_> = corrected.iter().copied().collect();
            let id = &order.identifier;
            discrepancies::resolve_refunds(conn, merchant, id, &refunds, &resolution).await?;
        }
        Ok(discrepancies::record_once(conn, &self.discrepancies, now).await?)
    }
}
