//! Labels that expire before the parcel is handed over. Each has a transaction of its own, which locks the return first.

use std::time::Duration;

use domain::access::MerchantId;
use domain::labels::LabelState;
use platform::database::{DatabaseError, Pool, retention_time};
use platform::{Process, Timestamp, chain};
use serde_json::json;
use uuid::Uuid;

use super::responses::add_entry;
use super::{lock, units_in};
use crate::store::label_requests;

const INTERVAL: Duration = Duration::from_secs(60);
/// Labels that are looked at before the next query.
const BATCH: i64 = 100;

/// Expires labels periodically, by the clock of the database.
pub(crate) fn start(process: &Process) {
    let (pool, clock) = (process.pool.clone(), process.clock.clone());
    process.tasks.spawn_interval("label expiry", INTERVAL, move || {
        let pool = pool.clone();
        let now = clock.now();
        async move {
            if let Err(error) = expire_due(&pool, now).await {
                tracing::warn!(error = chain(&error), "expiring labels failed");
            }
        }
    });
}

/// Expires the labels that are due. `now` is the time of this process.
pub(crate) async fn expire_due(pool: &Pool, now: Timestamp) -> Result<(), DatabaseError> {
    let now = retention_time(&mut *pool.get().await?, now).await?;
    loop {
        let due = label_requests::due_to_expire(&mut *pool.get().await?, now, BATCH).await?;
        for (merchant, id) in &due {
            expire(pool, merchant, *id, now).await?;
        }
        if i64::try_from(due.len()).unwrap_or(i64::MAX) < BATCH {
            return Ok(());
        }
    }
}

/// Expires a label whose parcel neither a carrier nor the warehouse has.
async fn expire(
    pool: &Pool,
    merchant: &MerchantId,
    id: Uuid,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    pool.transaction_of(merchant.as_str(), async |conn| {
        let Some((rma, request)) = lock(conn, merchant, id).await? else { return Ok(()) };
        if request.state != LabelState::Bought {
            return Ok(());
        }
        if units_in(&rma, &request).any(|unit| unit.has_arrived()) {
            return label_requests::keep(conn, &request).await;
        }
        label_requests::expire(conn, &request, now).await?;
        let detail = json!({ "tracking_number": request.tracking_number });
        add_entry(conn, &request, ("deadline", "label expired", None), detail, now).await
    })
    .await
}
