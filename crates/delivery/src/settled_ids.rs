//! Deliveries that this replica settled, for the dispatcher if it runs here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// Ids are dropped beyond this number: a replica that does not lead never takes them. The dispatcher
/// then reads settled deliveries from the database.
const MAX_IDS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct SettledIds {
    ids: Mutex<Vec<Uuid>>,
    is_awaited: AtomicBool,
}

impl SettledIds {
    /// Adds deliveries that left the broker. Returns whether the dispatcher waits for any.
    pub(crate) fn add(&self, settled: impl IntoIterator<Item = Uuid>) -> bool {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let space = MAX_IDS.saturating_sub(ids.len());
        ids.extend(settled.into_iter().take(space));
        self.is_awaited.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self) -> Vec<Uuid> {
        std::mem::take(&mut self.ids.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets whether an endpoint waits for a settlement. Call it before the last
    /// [`SettledIds::take`], so that no delivery is settled in between unnoticed.
    pub(crate) fn set_awaited(&self, is_awaited: bool) {
        self.is_awaited.store(is_awaited, Ordering::Relaxed);
    }
}
