//! The previews in progress: one for each merchant, and the memory for the orders of all.
//!
//! A request that ends does not stop its thread, so the thread keeps the place of its merchant until it is done. It looks
//! often whether the request still waits for it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::access::MerchantId;
use platform::MemoryBudget;
use tokio::time::Instant;

use crate::blocking::off_worker;
use crate::error::Error;

/// A preview looks at no further returns after this time.
const MAX_DURATION: Duration = Duration::from_secs(2);
/// Stored bytes of the orders that previews have in memory at the same time. Parsed orders take a multiple of it.
const MAX_ORDER_BYTES: usize = 16 << 20;

/// The merchants with a preview in progress, and the memory of their orders.
#[derive(Debug, Clone)]
pub(crate) struct Previews {
    merchants: Arc<Mutex<HashSet<MerchantId>>>,
    pub(crate) memory: MemoryBudget,
}

/// A preview that a request waits for.
pub(crate) struct PreviewInProgress(Arc<Place>);

/// The place of a merchant among the previews in progress. The request and its thread share it.
pub(crate) struct Place {
    previews: Previews,
    merchant: MerchantId,
    started_at: Instant,
    is_abandoned: AtomicBool,
}

impl Default for Previews {
    fn default() -> Self {
        Self { merchants: Arc::default(), memory: MemoryBudget::new(MAX_ORDER_BYTES) }
    }
}

impl Previews {
    /// Starts the preview of a merchant. Fails while it has another one.
    pub(crate) fn start(&self, merchant: &MerchantId) -> Result<PreviewInProgress, Error> {
        let mut merchants = self.merchants.lock().unwrap_or_else(PoisonError::into_inner);
        if !merchants.insert(merchant.clone()) {
            return Err(Error::PreviewInProgress);
        }
        Ok(PreviewInProgress(Arc::new(Place {
            previews: self.clone(),
            merchant: merchant.clone(),
            started_at: Instant::now(),
            is_abandoned: AtomicBool::new(false),
        })))
    }
}

impl PreviewInProgress {
    /// Runs work off the HTTP workers. If the request ends first, the merchant has its place until the work is done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Place) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let place = Arc::clone(&self.0);
        off_worker(move || work(&place)).await
    }

    /// Whether the preview looks at no further returns.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

impl Drop for PreviewInProgress {
    fn drop(&mut self) {
        self.0.is_abandoned.store(true, Ordering::Relaxed);
    }
}

impl Place {
    /// Whether the request has ended or the time of the preview is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_abandoned() || self.started_at.elapsed() > MAX_DURATION
    }

    /// Whether the request has ended.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut merchants = self.previews.merchants.lock().unwrap_or_else(PoisonError::into_inner);
        merchants.remove(&self.merchant);
    }
}
