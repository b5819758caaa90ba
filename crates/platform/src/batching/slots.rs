//! Slots for requests that are processed alone.
//!
//! Each owner has one slot at a time and its requests take turns for it, so an owner whose requests wait for a
//! locked row leaves the other slots to other owners.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

pub(super) struct Slots {
    all: Semaphore,
    /// The owners with requests that have a slot or wait for one.
    owners: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A slot of an owner. The fields are released in this order.
pub(super) struct Slot<'a> {
    _of_all: SemaphorePermit<'a>,
    _of_owner: OwnerTurn<'a>,
}

/// The turn of one request among the requests of its owner, or its wait for that turn.
struct OwnerTurn<'a> {
    slots: &'a Slots,
    owner: String,
    turn: Option<OwnedSemaphorePermit>,
}

impl Slots {
    pub(super) fn new(number: usize) -> Self {
        Self { all: Semaphore::new(number), owners: Mutex::default() }
    }

    /// Waits for the turn of the request, then for a slot. Cancel safe.
    pub(super) async fn acquire(&self, owner: &str) -> Result<Slot<'_>, AcquireError> {
        let turns = self.lock().entry(owner.to_owned()).or_insert_with(one).clone();
        let mut of_owner = OwnerTurn { slots: self, owner: owner.to_owned(), turn: None };
        of_owner.turn = Some(turns.acquire_owned().await?);
        Ok(Slot { _of_all: self.all.acquire().await?, _of_owner: of_owner })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Semaphore>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn one() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1))
}

impl Drop for OwnerTurn<'_> {
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
        let slots = Slots::new(2);
        let first = slots.acquire("a").await.unwrap();
        let mut second = Box::pin(slots.acquire("a"));
        assert!((&mut second).now_or_never().is_none());
        let other = slots.acquire("b").now_or_never().unwrap().unwrap();
        assert!(slots.acquire("c").now_or_never().is_none(), "all slots are taken");
        drop(first);
        drop((&mut second).now_or_never().unwrap());
        drop(other);
        drop(second);
        assert!(slots.lock().is_empty());
    }

    #[tokio::test]
    async fn a_request_that_stops_waiting_leaves_nothing_behind() {
        let slots = Slots::new(1);
        let first = slots.acquire("a").await.unwrap();
        let mut second = Box::pin(slots.acquire("a"));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        drop(second);
        assert!(slots.lock().is_empty());
        assert!(slots.acquire("a").now_or_never().is_some());
    }
}
