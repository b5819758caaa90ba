//! Returns that the refunds of a batch of orders may affect. One statement locks all of them, in
//! key order. One order may name hundreds of returns of megabytes each, so the returns are read in
//! chunks, and only the fields that refund matching needs stay in memory.

use std::collections::{BTreeMap, BTreeSet};

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::order::Refund;
use domain::returns::{CandidateReturn, Change, RefundedUnit, Rma};
use platform::{MAX_BATCH_BYTES, Timestamp};
use serde_json::json;

use crate::error::Error;
use crate::messages::Messages;
use crate::return_changes::{Cause, ReturnChanges};
use crate::store::locked_returns::{Locked, load, lock_affected};
use crate::store::orders::ResourceKey;

/// Maximum bytes of the separate messages about the refunds of one batch.
const MAX_MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// Keyed by merchant and RMA identifier.
#[derive(Default)]
pub(crate) struct AffectedReturns(BTreeMap<(String, String), Entry>);

struct Entry {
    candidate: CandidateReturn,
    locked: Locked,
    /// In the order in which they are applied.
    refunds: Vec<ReturnRefund>,
}

struct ReturnRefund {
    /// Several identifiers only if the messages of a batch are too large.
    identifiers: Vec<String>,
    /// The units of the return that the refund covers; none for a refund that only names the return.
    units: Vec<RefundedUnit>,
}

impl AffectedReturns {
    /// Locks the returns that hold units of these orders, and the named returns. Fails with
    /// [`Error::BatchTooLarge`] if they have more than `max_bytes` together.
    pub(crate) async fn lock(
        conn: &mut AsyncPgConnection,
        orders: &[ResourceKey<'_>],
        named: &[ResourceKey<'_>],
        max_bytes: usize,
    ) -> Result<Self, Error> {
        let mut entries = BTreeMap::new();
        if orders.is_empty() && named.is_empty() {
            return Ok(Self(entries));
        }
        let wanted: BTreeSet<_> = orders.iter().copied().collect();
        let locked = lock_affected(conn, orders, named).await?;
        if locked.iter().map(|it| it.bytes).sum::<usize>() > max_bytes {
            return Err(Error::BatchTooLarge);
        }
        for chunk in chunks(&locked) {
            let found = load(conn, chunk).await?;
            for (locked, rma) in chunk.iter().zip(found) {
                let does_matter = |order: &str| wanted.contains(&(locked.merchant.as_str(), order));
                let candidate = CandidateReturn::new(&rma, does_matter);
                let key = (locked.merchant.clone(), locked.rma_identifier.clone());
                let entry = Entry { candidate, locked: locked.clone(), refunds: Vec::new() };
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

    /// Records the refunds of a snapshot and the units that they cover.
    pub(crate) fn cover(
        &mut self,
        merchant: &MerchantId,
        refunds: &[&Refund],
        covered: Vec<RefundedUnit>,
    ) {
        let mut by_refund: BTreeMap<_, BTreeMap<String, Vec<_>>> = BTreeMap::new();
        for it in covered {
            let Some(rma) = it.rma_identifier.clone() else { continue };
            let returns = by_refund.entry(it.refund_identifier.clone()).or_default();
            returns.entry(rma).or_default().push(it);
        }
        for refund in refunds {
            let mut returns = by_refund.remove(refund.identifier.as_str()).unwrap_or_default();
            if let Some(named) = &refund.rma_identifier {
                returns.entry(named.clone()).or_default();
            }
            for (rma, units) in returns {
                self.add(merchant, refund, rma, units);
            }
        }
    }

    fn add(
        &mut self,
        merchant: &MerchantId,
        refund: &Refund,
        rma: String,
        units: Vec<RefundedUnit>,
    ) {
        let Some(entry) = self.0.get_mut(&(merchant.to_string(), rma)) else { return };
        if !entry.candidate.takes_refunds() {
            return;
        }
        units.iter().for_each(|it| entry.candidate.mark_refunded(&it.unit));
        entry.refunds.push(ReturnRefund { identifiers: vec![refund.identifier.clone()], units });
    }

    /// Saves the refunded returns, each refund with its own message.
    pub(crate) async fn record(
        self,
        conn: &mut AsyncPgConnection,
        messages: &Messages,
        cause: &Cause<'_>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let touched = self.0.into_values().filter(|entry| !entry.refunds.is_empty());
        let (locked, refunds): (Vec<_>, Vec<_>) =
            touched.map(|entry| (entry.locked, entry.refunds)).unzip();
        let mut refunds = refunds.into_iter();
        let mut bytes = 0;
        for chunk in chunks(&locked) {
            let found = load(conn, chunk).await?;
            for (mut rma, refunds) in found.into_iter().zip(refunds.by_ref()) {
                let mut changes = ReturnChanges::new(messages);
                apply(&mut changes, &mut rma, refunds, bytes, cause, now)?;
                bytes += changes.bytes();
                changes.save_changed(conn, now).await?;
            }
        }
        Ok(())
    }
}

/// Applies refunds to a return. Each refund has its own message, until the messages of the batch
/// reach the limit: an order may have thousands of refunds of a return with thousands of units. The
/// last message then reports all other refunds.
fn apply(
    changes: &mut ReturnChanges,
    rma: &mut Rma,
    refunds: Vec<ReturnRefund>,
    batch_bytes: usize,
    cause: &Cause<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let mut refunds = refunds.into_iter();
    while let Some(mut refund) = refunds.next() {
        if batch_bytes + changes.bytes() > MAX_MESSAGE_BYTES {
            for other in refunds.by_ref() {
                refund.identifiers.extend(other.identifiers);
                refund.units.extend(other.units);
            }
        }
        let change: Change = rma
            .refund(&refund.units, now)
            .map_err(|refusal| Error::Refused(rma.rma_identifier.clone(), refusal))?;
        let mut cause = cause.clone();
        if let Some(detail) = cause.detail.as_object_mut() {
            detail.insert("refund_identifier".to_owned(), json!(refund.identifiers.join(", ")));
        }
        changes.add(rma, &change, cause, now)?;
    }
    Ok(())
}

/// Splits the returns into chunks of at most [`MAX_BATCH_BYTES`].
fn chunks(locked: &[Locked]) -> impl Iterator<Item = &[Locked]> {
    let mut bytes = locked.first().map_or(0, |first| first.bytes);
    locked.chunk_by(move |_, next| {
        bytes += next.bytes;
        let fits = bytes <= MAX_BATCH_BYTES;
        if !fits {
            bytes = next.bytes;
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
            bytes: it << 20,
        });
        let sizes: Vec<_> = chunks(&locked).map(<[_]>::len).collect();
        assert_eq!(sizes, [1, 2, 1, 1, 2]);
        assert_eq!(chunks(&[]).count(), 0);
    }
}
