//! A byte semaphore: it bounds the memory that requests or messages in flight take together.
//!
//! See docs/decisions/memory-limits.md.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{ErrorKind, Failure};

/// Size at which a background task ends a batch of rows, events or messages. A batch has at least one of them,
/// however large.
pub const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;
/// Largest budget in KiB: 1 TiB.
const MAX_KIB: usize = 1 << 30;
/// The unit in which memory is counted.
const KIB: usize = 1024;
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Memory that several holders share. Clones share one budget.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    semaphore: Arc<Semaphore>,
    total: usize,
}

/// One holder's part of a [`MemoryBudget`]; dropping it returns the part.
#[derive(Debug)]
pub struct MemoryPermit(OwnedSemaphorePermit);

/// The memory budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bodies of the requests in progress take too much memory")]
pub struct Overloaded;

impl Failure for Overloaded {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Limited
    }

    fn retry_after(&self) -> Option<Duration> {
        Some(RETRY_AFTER)
    }
}

impl MemoryBudget {
    pub fn new(bytes: usize) -> Self {
        let total = kib(bytes).clamp(1, MAX_KIB);
        Self { semaphore: Arc::new(Semaphore::new(total)), total }
    }

    /// Waits until this many bytes are free. A request for more than the whole budget gets the whole.
    pub async fn acquire(&self, bytes: usize) -> MemoryPermit {
        let permits = self.kib(bytes);
        match self.semaphore.clone().acquire_many_owned(permits).await {
            Ok(permit) => MemoryPermit(permit),
            Err(_closed) => unreachable!("nothing closes the semaphore"),
        }
    }

    /// As [`MemoryBudget::acquire`], without waiting.
    pub fn try_acquire(&self, bytes: usize) -> Result<MemoryPermit, Overloaded> {
        let acquired = self.semaphore.clone().try_acquire_many_owned(self.kib(bytes));
        acquired.map(MemoryPermit).map_err(|_none_left| Overloaded)
    }

    pub fn total_bytes(&self) -> usize {
        self.total * KIB
    }

    pub fn total_kib(&self) -> u32 {
        self.kib(usize::MAX)
    }

    /// The KiB that [`MemoryBudget::acquire`] takes for this many bytes.
    pub fn kib(&self, bytes: usize) -> u32 {
        u32::try_from(kib(bytes).min(self.total)).unwrap_or(u32::MAX)
    }

    pub fn used_bytes(&self) -> usize {
        (self.total - self.semaphore.available_permits()) * KIB
    }
}

impl MemoryPermit {
    pub fn bytes(&self) -> usize {
        self.0.num_permits() * KIB
    }

    /// Adds another permit of the same budget to this one.
    pub fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
    }

    /// Returns the bytes beyond this number.
    pub fn shrink_to(&mut self, bytes: usize) {
        let excess = self.0.num_permits().saturating_sub(kib(bytes));
        drop(self.0.split(excess));
    }
}

fn kib(bytes: usize) -> usize {
    bytes.div_ceil(KIB)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn bytes_are_free_again_when_their_permit_is_dropped() {
        let budget = MemoryBudget::new(10 * KIB);
        let first = budget.try_acquire(6 * KIB).unwrap();
        assert_eq!(budget.try_acquire(5 * KIB).unwrap_err(), Overloaded);
        let mut waiting = Box::pin(budget.acquire(5 * KIB));
        assert!((&mut waiting).now_or_never().is_none());
        drop(first);
        assert_eq!(waiting.now_or_never().unwrap().bytes(), 5 * KIB);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn a_request_for_more_than_the_budget_gets_the_whole_budget() {
        let budget = MemoryBudget::new(10 * KIB);
        let all = budget.try_acquire(usize::MAX).unwrap();
        assert_eq!((all.bytes(), budget.used_bytes()), (budget.total_bytes(), 10 * KIB));
        assert!(budget.try_acquire(1).is_err());
    }

    #[test]
    fn a_permit_can_be_enlarged_and_shrunk() {
        let budget = MemoryBudget::new(10 * KIB);
        let mut permit = budget.try_acquire(4 * KIB).unwrap();
        permit.merge(budget.try_acquire(4 * KIB).unwrap());
        assert_eq!(permit.bytes(), 8 * KIB);
        permit.shrink_to(2 * KIB);
        permit.shrink_to(3 * KIB);
        assert_eq!((permit.bytes(), budget.used_bytes()), (2 * KIB, 2 * KIB));
    }
}
