//! The returns that a batch of orders concerns. All of them are locked at once, in the order of
//! their keys; but one order may name hundreds of returns of megabytes each, so they are read in
//! portions, and what stays of them is what refunds look at.

use std::collections::{BTreeMap, BTreeSet};

use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::event::Event as _;
use domain::order::OrderStored;
use domain::returns::{CandidateReturn, Change, RefundedUnit, Rma};
use platform::Timestamp;
use serde_json::json;

use crate::chronicle::{self, Cause};
use crate::error::Error;
use crate::store::orders::Key;
use crate::store::returns::{Locked, load, lock_concerned};

/// So many bytes of returns are read at once, unless a single one has more.
const PORTION: usize = 8 * 1024 * 1024;

/// By merchant and identifier.
#[derive(Default)]
pub(super) struct Concerned(BTreeMap<(String, String), Entry>);

struct Entry {
    known: CandidateReturn,
    locked: Locked,
    /// What each snapshot covers of it.
    covered: Vec<Vec<RefundedUnit>>,
}

impl Concerned {
    /// Locks the returns in which units of these orders are, and those that are named.
    pub(super) async fn lock(
        conn: &mut AsyncPgConnection,
        orders: &[Key<'_>],
        named: &[Key<'_>],
    ) -> Result<Self, Error> {
        let mut entries = BTreeMap::new();
        if orders.is_empty() && named.is_empty() {
            return Ok(Self(entries));
        }
        let wanted: BTreeSet<_> = orders.iter().copied().collect();
        let locked = lock_concerned(conn, orders, named).await?;
        for portion in portions(&locked) {
            let found = load(conn, portion).await?;
            for (locked, rma) in portion.iter().zip(found) {
                let does_matter = |order: &str| wanted.contains(&(locked.merchant.as_str(), order));
                let known = CandidateReturn::new(&rma, does_matter);
                let key = (locked.merchant.clone(), locked.rma_identifier.clone());
                let entry = Entry { known, locked: locked.clone(), covered: Vec::new() };
                entries.insert(key, entry);
            }
        }
        Ok(Self(entries))
    }

    /// Those in which units of an order wait for a refund, and those with these names.
    pub(super) fn of(
        &self,
        merchant: &MerchantId,
        order: &str,
        names: &[&str],
    ) -> impl Iterator<Item = &CandidateReturn> {
        let own = self.0.iter().filter(|((owner, _), _)| owner == merchant.as_str());
        own.map(|(_, entry)| &entry.known).filter(move |it| {
            it.awaits_refund(order) || names.contains(&it.rma_identifier.as_str())
        })
    }

    /// Notes what a snapshot covers.
    pub(super) fn cover(&mut self, merchant: &MerchantId, covered: Vec<RefundedUnit>) {
        let mut by_return: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for it in covered {
            let Some(name) = it.rma_identifier.clone() else { continue };
            by_return.entry((merchant.to_string(), name)).or_default().push(it);
        }
        for (key, covered) in by_return {
            let Some(entry) = self.0.get_mut(&key) else { continue };
            covered.iter().for_each(|it| entry.known.mark_refunded(&it.unit));
            entry.covered.push(covered);
        }
    }

    /// Saves what is covered, and tells of the returns that it settles.
    pub(super) async fn record(
        self,
        conn: &mut AsyncPgConnection,
        deliveries: &Deliveries,
        now: Timestamp,
    ) -> Result<(), Error> {
        let touched = self.0.into_values().filter(|entry| !entry.covered.is_empty());
        let (locked, covered): (Vec<_>, Vec<_>) =
            touched.map(|entry| (entry.locked, entry.covered)).unzip();
        let mut covered = covered.into_iter();
        for portion in portions(&locked) {
            let found = load(conn, portion).await?;
            for ((locked, mut rma), covered) in portion.iter().zip(found).zip(covered.by_ref()) {
                let change = refund(&mut rma, &covered, now)?;
                let merchant = locked.merchant.parse();
                let merchant = merchant.map_err(|_damaged| Error::Damaged("merchant"))?;
                let cause = Cause { actor: OrderStored::TYPE, what: "refund", detail: json!({}) };
                chronicle::record(conn, deliveries, &merchant, &rma, &change, cause, now).await?;
            }
        }
        Ok(())
    }
}

/// All that snapshots cover of a return is one change.
fn refund(rma: &mut Rma, covered: &[Vec<RefundedUnit>], now: Timestamp) -> Result<Change, Error> {
    let mut all = Change::default();
    for covered in covered {
        let change = rma
            .refund(covered, now)
            .map_err(|refusal| Error::Refused(rma.rma_identifier.clone(), refusal))?;
        all.event = all.event.or(change.event);
        all.units.extend(change.units);
        all.late.extend(change.late);
        all.discrepancies.extend(change.discrepancies);
    }
    Ok(all)
}

/// As many returns as may be read at once, and then the next.
fn portions(locked: &[Locked]) -> impl Iterator<Item = &[Locked]> {
    let mut weight = locked.first().map_or(0, |first| first.weight);
    locked.chunk_by(move |_, next| {
        weight += next.weight;
        let has_room = weight <= PORTION;
        if !has_room {
            weight = next.weight;
        }
        has_room
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_ends_where_it_gets_too_heavy_and_has_one_at_least() {
        let megabytes = [9, 1, 7, 1, 20, 3, 3];
        let locked = megabytes.map(|it| Locked {
            merchant: String::new(),
            rma_identifier: String::new(),
            weight: it << 20,
        });
        let sizes: Vec<_> = portions(&locked).map(<[_]>::len).collect();
        assert_eq!(sizes, [1, 2, 1, 1, 2]);
        assert_eq!(portions(&[]).count(), 0);
    }
}
