//! A limited number of slots, of which one owner can have only a few.
//!
//! The requests of an owner take turns for its slots, so an owner whose requests are slow, or wait for a locked
//! row, leaves the other slots to other owners.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

pub(crate) struct Slots {
    all: Arc<Semaphore>,
    of_each: usize,
    /// The owners with requests that have a slot or wait for one.
    owners: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A slot of an owner. The fields are released in this order.
pub(crate) struct Slot {
    _of_all: OwnedSemaphorePermit,
    _of_owner: OwnerTurn,
}

/// The turn of one request among the requests of its owner, or its wait for that turn.
struct OwnerTurn {
    slots: Arc<Slots>,
    owner: String,
    turn: Option<OwnedSemaphorePermit>,
}

impl Slots {
    /// As many slots for all owners together, and as many for each.
    pub(crate) fn new(all: usize, of_each: usize) -> Arc<Self> {
        Arc::new(Self { all: Arc::new(Semaphore::new(all)), of_each, owners: Mutex::default() })
    }

    /// Waits for the turn of the request, then for a slot. Cancel safe.
    pub(crate) async fn acquire(self: &Arc<Self>, owner: &str) -> Result<Slot, AcquireError> {
        let one = || Arc::new(Semaphore::new(self.of_each));
        let turns = self.lock().entry(owner.to_owned()).or_insert_with(one).clone();
        let mut of_owner = OwnerTurn { slots: self.clone(), owner: owner.to_owned(), turn: None };
        of_owner.turn = Some(turns.acquire_owned().await?);
        Ok(Slot { _of_all: self.all.clone().acquire_owned().await?, _of_owner: of_owner })
    }

    /// Whether no request has a slot or waits for one.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Semaphore>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OwnerTurn {
    fn drop(&mut self) {
        let mut owners = self.slots.lock();
        drop(self.turn.take());
        // Only the map is left with the semaphore of an owner without requests.
        if owners.get(&self.owner).is_some_and(|turns| Arc::strong_count(turns) == 1) {
            owners.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn an_owner_has_one_slot_and_leaves_the_others() {
        let slots = Slots::new(2, 1);
        let first = slots.acquire("a").await.unwrap();
        let mut second = Box::pin(slots.acquire("a"));
        assert!((&mut second).now_or_never().is_none());
        let other = slots.acquire("b").now_or_never().unwrap().unwrap();
        assert!(slots.acquire("c").now_or_never().is_none(), "all slots are taken");
        drop(first);
        drop((&mut second).now_or_never().unwrap());
        drop(other);
        drop(second);
        assert!(slots.is_idle());
    }

    #[tokio::test]
    async fn a_request_that_stops_waiting_leaves_nothing_behind() {
        let slots = Slots::new(1, 1);
        let first = slots.acquire("a").await.unwrap();
        let mut second = Box::pin(slots.acquire("a"));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        drop(second);
        assert!(slots.is_idle());
        assert!(slots.acquire("a").now_or_never().is_some());
    }
}
