//! Records the orders that merchants send.
//!
//! Requests record their orders in memory, and a task adds them to the database every second. So no
//! request waits for it, whether it is accepted or rejected. A process that is killed loses the orders
//! that it recorded in the last second; the orders themselves are stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::access::MerchantId;
use platform::chain;
use platform::database::{DatabaseError, Pool};
use tokio_util::sync::CancellationToken;

use crate::merchant_activity::MerchantActivity;
use crate::store;

const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// The activity that is not in the database yet.
#[derive(Default)]
pub(crate) struct Activity(Mutex<BTreeMap<MerchantId, MerchantActivity>>);

impl Activity {
    pub(crate) fn record(&self, merchant: &MerchantId, activity: MerchantActivity) {
        let mut pending = self.lock();
        match pending.get_mut(merchant) {
            Some(earlier) => earlier.add(activity),
            None => drop(pending.insert(merchant.clone(), activity)),
        }
    }

    /// Saves the activity every second until `stop` is canceled, and once more.
    pub(crate) async fn run(self: Arc<Self>, pool: Pool, stop: CancellationToken) {
        loop {
            let is_last = tokio::select! {
                () = stop.cancelled() => true,
                () = tokio::time::sleep(SAVE_INTERVAL) => false,
            };
            if let Err(error) = self.save(&pool).await {
                tracing::debug!(error = chain(&error), "the activity is saved later");
            }
            if is_last {
                return;
            }
        }
    }

    /// Adds the activity to the database. Activity that cannot be saved is kept.
    pub(crate) async fn save(&self, pool: &Pool) -> Result<(), DatabaseError> {
        let mut pending = std::mem::take(&mut *self.lock());
        while let Some((merchant, activity)) = pending.pop_first() {
            if let Err(error) = save(pool, &merchant, &activity).await {
                pending.insert(merchant, activity);
                self.restore(pending);
                return Err(error);
            }
        }
        Ok(())
    }

    fn restore(&self, unsaved: BTreeMap<MerchantId, MerchantActivity>) {
        let later = std::mem::replace(&mut *self.lock(), unsaved);
        later.into_iter().for_each(|(merchant, activity)| self.record(&merchant, activity));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<MerchantId, MerchantActivity>> {
        // The map is consistent between any two statements that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn save(
    pool: &Pool,
    merchant: &MerchantId,
    activity: &MerchantActivity,
) -> Result<(), DatabaseError> {
    store::add_activity(&mut *pool.get().await?, merchant, activity).await
}
