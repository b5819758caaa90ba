//! Returns that the refunds of a batch of orders may affect. One statement locks all of them, in
//! key order. One order may name hundreds of returns of megabytes each, so the returns are read in
//! chunks, and only the fields that refund matching needs stay in memory.

use std::collections::{BTreeMap, BTreeSet};

use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::returns::{CandidateReturn, Change, RefundedUnit, Rma};
use platform::Timestamp;

use crate::error::Error;
use crate::return_changes::{self, Cause};
use crate::store::locked_returns::{Locked, load, lock_affected};
use crate::store::orders::Key;

/// Maximum bytes of returns in one chunk. A single return may be larger.
const MAX_CHUNK_BYTES: usize = 8 * 1024 * 1024;

/// Keyed by merchant and RMA identifier.
#[derive(Default)]
pub(crate) struct AffectedReturns(BTreeMap<(String, String), Entry>);

struct Entry {
    candidate: CandidateReturn,
    locked: Locked,
    /// Units that each snapshot refunds.
    covered: Vec<Vec<RefundedUnit>>,
}

impl AffectedReturns {
    /// Locks the returns that hold units of these orders, and the named returns.
    pub(crate) async fn lock(
        conn: &mut AsyncPgConnection,
        orders: &[Key<'_>],
        named: &[Key<'_>],
    ) -> Result<Self, Error> {
        let mut entries = BTreeMap::new();
        if orders.is_empty() && named.is_empty() {
            return Ok(Self(entries));
        }
        let wanted: BTreeSet<_> = orders.iter().copied().collect();
        let locked = lock_affected(conn, orders, named).await?;
        for chunk in chunks(&locked) {
            let found = load(conn, chunk).await?;
            for (locked, rma) in chunk.iter().zip(found) {
                let does_matter = |order: &str| wanted.contains(&(locked.merchant.as_str(), order));
                let candidate = CandidateReturn::new(&rma, does_matter);
                let key = (locked.merchant.clone(), locked.rma_identifier.clone());
                let entry = Entry { candidate, locked: locked.clone(), covered: Vec::new() };
                entries.insert(key, entry);
            }
        }
        Ok(Self(entries))
    }

    /// Returns with units of the order that await a refund, and the named returns.
    pub(crate) fn of(
        &self,
        merchant: &MerchantId,
        order: &str,
        names: &[&str],
    ) -> impl Iterator<Item = &CandidateReturn> {
        let own = self.0.iter().filter(|((owner, _), _)| owner == merchant.as_str());
        own.map(|(_, entry)| &entry.candidate).filter(move |it| {
            it.awaits_refund(order) || names.contains(&it.rma_identifier.as_str())
        })
    }

    /// Records the units that a snapshot refunds.
    pub(crate) fn cover(&mut self, merchant: &MerchantId, covered: Vec<RefundedUnit>) {
        let mut by_return: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for it in covered {
            let Some(name) = it.rma_identifier.clone() else { continue };
            by_return.entry((merchant.to_string(), name)).or_default().push(it);
        }
        for (key, covered) in by_return {
            let Some(entry) = self.0.get_mut(&key) else { continue };
            covered.iter().for_each(|it| entry.candidate.mark_refunded(&it.unit));
            entry.covered.push(covered);
        }
    }

    /// Saves and announces the returns with refunded units.
    pub(crate) async fn record(
        self,
        conn: &mut AsyncPgConnection,
        deliveries: &Deliveries,
        cause: &Cause<'_>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let touched = self.0.into_values().filter(|entry| !entry.covered.is_empty());
        let (locked, covered): (Vec<_>, Vec<_>) =
            touched.map(|entry| (entry.locked, entry.covered)).unzip();
        let mut covered = covered.into_iter();
        for chunk in chunks(&locked) {
            let found = load(conn, chunk).await?;
            for (mut rma, covered) in found.into_iter().zip(covered.by_ref()) {
                let change = refund(&mut rma, &covered, now)?;
                let cause = cause.clone();
                return_changes::record(conn, deliveries, &rma, &change, cause, now).await?;
            }
        }
        Ok(())
    }
}

/// Applies the refunds of all snapshots to a return as one change.
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

/// Splits the returns into chunks of at most [`MAX_CHUNK_BYTES`].
fn chunks(locked: &[Locked]) -> impl Iterator<Item = &[Locked]> {
    let mut weight = locked.first().map_or(0, |first| first.weight);
    locked.chunk_by(move |_, next| {
        weight += next.weight;
        let fits = weight <= MAX_CHUNK_BYTES;
        if !fits {
            weight = next.weight;
        }
        fits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_ends_at_the_byte_limit_and_has_at_least_one_return() {
        let megabytes = [9, 1, 7, 1, 20, 3, 3];
        let locked = megabytes.map(|it| Locked {
            merchant: String::new(),
            rma_identifier: String::new(),
            weight: it << 20,
        });
        let sizes: Vec<_> = chunks(&locked).map(<[_]>::len).collect();
        assert_eq!(sizes, [1, 2, 1, 1, 2]);
        assert_eq!(chunks(&[]).count(), 0);
    }
}
