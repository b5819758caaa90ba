//! Labels that are documents: for shoppers and staff, until their retention ends.

use std::time::Duration;

use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use domain::labels::LabelFormat;
use domain::merchant::Merchant;
use platform::database::{DatabaseError, Pool, retention_time};
use platform::sealing::Sealer;
use platform::shopper_proof::ProvenOrders;
use platform::{Process, Timestamp, chain};
use uuid::Uuid;

use crate::error::Error;
use crate::labels::sealed::open_document;
use crate::returns;
use crate::settings::Labels;
use crate::store::label_requests::{find, remove_sealed, sealed_document};

const CLEAN_UP_INTERVAL: Duration = Duration::from_secs(600);
/// Labels that one statement removes.
const BATCH_SIZE: i64 = 1_000;

/// A label, and a name for its file.
#[derive(Debug)]
pub(crate) struct LabelFile {
    pub(crate) name: String,
    pub(crate) format: LabelFormat,
    pub(crate) bytes: Vec<u8>,
}

/// The document of a merchant's label. For a shopper, labels of other returns than the own ones do not exist.
pub(crate) async fn load(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    merchant: &Merchant,
    id: Uuid,
    shopper: Option<&ProvenOrders>,
) -> Result<LabelFile, Error> {
    let missing = || Error::NoLabelDocument(id);
    let request = find(conn, &merchant.identifier, id).await?.ok_or_else(missing)?;
    let found = returns::find(conn, merchant, &request.rma_identifier, shopper).await;
    let rma = found.map_err(|error| match error {
        Error::NoReturn(_) => missing(),
        other => other,
    })?;
    let sealed = sealed_document(conn, &merchant.identifier, id).await?;
    let (format, sealed) = sealed.ok_or_else(missing)?;
    let bytes = open_document(sealer, &merchant.identifier, id, &sealed)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let rma: String = rma.rma_identifier.chars().map(plain).collect();
    let name = format!("{rma}-{}.{format}", request.parcel);
    Ok(LabelFile { name, format, bytes })
}

/// Removes documents and codes periodically when their retention ends.
pub(crate) fn start_clean_up(process: &Process, settings: &Labels) {
    let pool = process.pool.clone();
    let clock = process.clock.clone();
    let retention = settings.document_retention;
    process.tasks.spawn_interval("labels", CLEAN_UP_INTERVAL, move || {
        let pool = pool.clone();
        let now = clock.now();
        async move {
            let age = TimeDelta::from_std(retention).unwrap_or(TimeDelta::MAX);
            if let Err(error) = remove_expired(&pool, now, age).await {
                tracing::warn!(error = chain(&error), "removing old labels failed");
            }
        }
    });
}

/// Removes the documents and codes that are older than this age.
pub(crate) async fn remove_expired(
    pool: &Pool,
    now: Timestamp,
    age: TimeDelta,
) -> Result<(), DatabaseError> {
    let now = retention_time(&mut *pool.get().await?, now).await?;
    let Some(before) = now.checked_sub_signed(age) else { return Ok(()) };
    loop {
        let removed = remove_sealed(&mut *pool.get().await?, before, BATCH_SIZE).await?;
        if i64::try_from(removed).unwrap_or(i64::MAX) < BATCH_SIZE {
            return Ok(());
        }
    }
}
