//! Erases shoppers' data when its retention ends.
//!
//! Once a day the task reads all orders, a page in each transaction, and requests the erasure of those that
//! did not change for longer than the retention.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use domain::access::{InvalidMerchantId, MerchantId};
use platform::database::{DatabaseError, Pool, retention_time};
use platform::{Clock, Timestamp, chain};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::store::{self, NewErasure, OrderAge};

const PAGE_ORDERS: usize = 1000;
/// Pause between two pages, so that the search does not slow merchants.
const PAGE_INTERVAL: Duration = Duration::from_millis(50);
const POLL_INTERVAL: Duration = Duration::from_secs(600);
const SCAN_INTERVAL: TimeDelta = TimeDelta::days(1);
/// The author of these erasures.
const RETENTION: &str = "retention";

pub(crate) struct Retention {
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) retention: Duration,
    pub(crate) wake: Arc<Notify>,
}

impl Retention {
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            let pause = match self.step().await {
                Ok(true) => PAGE_INTERVAL,
                Ok(false) => POLL_INTERVAL,
                Err(error) => {
                    tracing::warn!(
                        error = chain(&error),
                        "the search for old orders continues later"
                    );
                    POLL_INTERVAL
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Reads one page. Returns whether another follows.
    async fn step(&self) -> Result<bool, DatabaseError> {
        let mut conn = self.pool.get().await?;
        let now = retention_time(&mut conn, self.clock.now()).await?;
        let Some(changed_before) =
            TimeDelta::from_std(self.retention).ok().and_then(|it| now.checked_sub_signed(it))
        else {
            return Ok(false);
        };
        let has_more = conn
            .transaction(async |conn| {
                let Some(scan) = store::lock_scan(conn).await? else { return Ok(false) };
                let is_at_start = scan.merchant.is_empty();
                if is_at_start && scan.finished_at.is_some_and(|at| now - at < SCAN_INTERVAL) {
                    return Ok(false);
                }
                let limit = i64::try_from(PAGE_ORDERS).unwrap_or(i64::MAX);
                let page = store::order_ages(conn, &scan, changed_before, limit).await?;
                request_erasures(conn, &page, changed_before, now).await?;
                let last = page.last().filter(|_| page.len() == PAGE_ORDERS);
                store::advance_scan(conn, last, now).await?;
                Ok::<_, DatabaseError>(last.is_some())
            })
            .await?;
        self.wake.notify_one();
        Ok(has_more)
    }
}

/// Requests an erasure for each merchant with expired orders. Open returns that changed since are kept.
async fn request_erasures(
    conn: &mut AsyncPgConnection,
    page: &[OrderAge],
    changed_before: Timestamp,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let mut expired: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for order in page.iter().filter(|order| order.is_expired) {
        expired.entry(&order.merchant).or_default().push(order.identifier.clone());
    }
    for (merchant, orders) in expired {
        let merchant: MerchantId = merchant.parse().map_err(|error: InvalidMerchantId| {
            diesel::result::Error::DeserializationError(error.into())
        })?;
        let new = NewErasure {
            id: Uuid::now_v7(),
            merchant: &merchant,
            email: None,
            force: false,
            force_before: Some(changed_before),
            requested_by: RETENTION,
            orders: &orders,
            at: now,
        };
        store::insert_erasure(conn, &new).await?;
        tracing::info!(
            erasure.id = %new.id, %merchant, orders = orders.len(), "the retention of orders ended"
        );
    }
    Ok(())
}
