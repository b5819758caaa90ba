//! Reads and locks returns.

use std::collections::{BTreeSet, HashMap};

use api::returns::ReturnSummary;
use chrono::{DateTime, Utc};
use diesel::OptionalExtension as _;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::returns::Rma;
use platform::batching::Processing;
use platform::database::{DatabaseError, column, prepared, sql};

use super::orders::ResourceKey;
use super::{DocumentRow, MAX_REQUEST_BATCH_BYTES, read, unreadable};

/// Limit on the returns of a shopper that rules count.
const MAX_COUNTED: i64 = 1_000;

/// Locks one of a merchant's returns.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
) -> Result<Option<Rma>, DatabaseError> {
    one(conn, merchant, rma_identifier, " FOR NO KEY UPDATE").await
}

platform::rows! {
    pub(crate) struct RequestedReturn {
        pub(crate) merchant: String,
        /// `NULL` if there is no such return, if another transaction has locked it, or if the documents are too large
        /// together.
        document: Option<String>,
    }
}

impl RequestedReturn {
    pub(crate) fn read(&self) -> Result<Option<Rma>, DatabaseError> {
        self.document.as_deref().map(read).transpose()
    }
}

/// Locks the named returns and the returns with units in the parcels, in the order of their keys. Canceled units
/// count only if they expired. In a batch, returns are skipped that are locked, or whose messages have a locked
/// counter, and documents of more than [`MAX_REQUEST_BATCH_BYTES`] together are not loaded. See
/// [`held`](super::units::held) for `OFFSET 0`.
pub(crate) async fn lock_requested(
    conn: &AsyncPgConnection,
    named: &[ResourceKey<'_>],
    parcels: &[ResourceKey<'_>],
    processing: Processing,
) -> Result<Vec<RequestedReturn>, DatabaseError> {
    let counter = delivery::lock_free_counter("sorted.merchant", "'rma:' || sorted.rma_identifier");
    let (lock, counter, max_bytes) = match processing {
        Processing::Batch => (
            "FOR NO KEY UPDATE SKIP LOCKED",
            counter.as_str(),
            i64::try_from(MAX_REQUEST_BATCH_BYTES).unwrap_or(i64::MAX),
        ),
        Processing::Alone => ("FOR NO KEY UPDATE", ALWAYS_FREE, i64::MAX),
    };
    requested(conn, (named, parcels), (lock, counter, max_bytes)).await
}

/// Finds the same returns as [`lock_requested`] without locks, to learn which orders must be locked before them.
pub(crate) async fn find_requested(
    conn: &AsyncPgConnection,
    named: &[ResourceKey<'_>],
    parcels: &[ResourceKey<'_>],
) -> Result<Vec<RequestedReturn>, DatabaseError> {
    requested(conn, (named, parcels), ("OFFSET 0", ALWAYS_FREE, i64::MAX)).await
}

const ALWAYS_FREE: &str = "SELECT true AS is_free";

async fn requested(
    mut conn: &AsyncPgConnection,
    (named, parcels): (&[ResourceKey<'_>], &[ResourceKey<'_>]),
    (lock, counter, max_bytes): (&str, &str, i64),
) -> Result<Vec<RequestedReturn>, DatabaseError> {
    let (merchants, names): (Vec<_>, Vec<_>) = named.iter().copied().unzip();
    let (parcel_merchants, numbers): (Vec<_>, Vec<_>) = parcels.iter().copied().unzip();
    let query = sql(
        format!(include_str!("lock_requested_returns.sql"), lock = lock, counter = counter),
        (merchants, names, parcel_merchants, numbers, max_bytes),
    );
    Ok(prepared(query).load(&mut conn).await?)
}

/// Finds one of a merchant's returns.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
) -> Result<Option<Rma>, DatabaseError> {
    one(conn, merchant, rma_identifier, "").await
}

async fn one(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
    lock: &str,
) -> Result<Option<Rma>, DatabaseError> {
    let query = sql(
        format!("SELECT document FROM returns WHERE merchant = $1 AND rma_identifier = $2{lock}"),
        (merchant.as_str(), rma_identifier),
    );
    let row: Option<DocumentRow> = prepared(query).get_result(conn).await.optional()?;
    row.map(|row| read(&row.document)).transpose()
}

platform::rows! {
    struct StartedRow {
        place: i64,
        created_at: DateTime<Utc>,
    }
}

/// A shopper whose returns are counted.
#[derive(Debug)]
pub(crate) struct CountedShopper<'a> {
    pub(crate) merchant: &'a str,
    pub(crate) email: String,
    pub(crate) since: DateTime<Utc>,
}

/// The times at which each of these shoppers started returns, without canceled and declined ones. At most [`MAX_COUNTED`] returns
/// of a shopper are read. `LATERAL` keeps the plan, as for orders.
pub(crate) async fn started_by(
    mut conn: &AsyncPgConnection,
    shoppers: &[CountedShopper<'_>],
) -> Result<Vec<Vec<DateTime<Utc>>>, DatabaseError> {
    let mut started_at = vec![Vec::new(); shoppers.len()];
    if shoppers.is_empty() {
        return Ok(started_at);
    }
    let query = sql(
        include_str!("returns_of_shoppers.sql"),
        (
            column(shoppers, |it| it.merchant),
            column(shoppers, |it| it.email.as_str()),
            column(shoppers, |it| it.since),
            MAX_COUNTED,
        ),
    );
    let rows: Vec<StartedRow> = prepared(query).load(&mut conn).await?;
    for StartedRow { place, created_at } in rows {
        let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
        if let Some(times) = started_at.get_mut(place) {
            times.push(created_at);
        }
    }
    Ok(started_at)
}

platform::rows! {
    struct KeptRow {
        merchant: String,
        rma_identifier: String,
        created_at: DateTime<Utc>,
    }
}

/// The times at which returns were started, by merchant, then by identifier.
pub(crate) type StartTimes = HashMap<String, HashMap<String, DateTime<Utc>>>;

/// Those of these returns whose units the shopper keeps. `LATERAL` keeps the plan, as for orders.
pub(crate) async fn kept(
    mut conn: &AsyncPgConnection,
    returns: &BTreeSet<ResourceKey<'_>>,
) -> Result<StartTimes, DatabaseError> {
    let mut kept = StartTimes::new();
    if returns.is_empty() {
        return Ok(kept);
    }
    let (merchants, identifiers): (Vec<_>, Vec<_>) = returns.iter().copied().unzip();
    let query = sql(include_str!("kept_returns.sql"), (merchants, identifiers));
    let rows: Vec<KeptRow> = prepared(query).load(&mut conn).await?;
    for KeptRow { merchant, rma_identifier, created_at } in rows {
        kept.entry(merchant).or_default().insert(rma_identifier, created_at);
    }
    Ok(kept)
}

platform::rows! {
    struct EmailRow {
        merchant: String,
        rma_identifier: String,
        customer_email: String,
    }
}

/// The e-mail addresses of the shoppers of returns: of the giftee, or of the person who withdrew from the contract, else
/// that of the order. Erased ones have none. `LATERAL` keeps the plan, as for orders.
pub(crate) async fn customer_emails(
    mut conn: &AsyncPgConnection,
    returns: &BTreeSet<ResourceKey<'_>>,
) -> Result<HashMap<(String, String), String>, DatabaseError> {
    if returns.is_empty() {
        return Ok(HashMap::new());
    }
    let (merchants, identifiers): (Vec<_>, Vec<_>) = returns.iter().copied().unzip();
    let query = sql(
        "SELECT found.* FROM unnest((SELECT $1), $2) AS wanted (merchant, rma_identifier), LATERAL ( \
             SELECT merchant, rma_identifier, customer_email FROM returns AS own \
             WHERE own.merchant = wanted.merchant AND own.rma_identifier = wanted.rma_identifier \
                 AND own.customer_email IS NOT NULL OFFSET 0 \
         ) AS found",
        (merchants, identifiers),
    );
    let rows: Vec<EmailRow> = prepared(query).load(&mut conn).await?;
    let entry = |row: EmailRow| ((row.merchant, row.rma_identifier), row.customer_email);
    Ok(rows.into_iter().map(entry).collect())
}

platform::rows! {
    struct SummaryRow {
        rma_identifier: String,
        status: String,
        created_at: DateTime<Utc>,
        updated_at: DateTime<Utc>,
    }
}

/// The newest returns with units of an order.
pub(crate) async fn of_order(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    order_identifier: &str,
    most: i64,
) -> Result<Vec<ReturnSummary>, DatabaseError> {
    let query = sql(
        "SELECT rma_identifier, status, created_at, updated_at FROM returns \
         WHERE merchant = $1 AND rma_identifier IN ( \
             SELECT rma_identifier FROM return_units WHERE merchant = $1 AND order_identifier = $2) \
         ORDER BY created_at DESC, rma_identifier DESC LIMIT $3",
        (merchant.as_str(), order_identifier, most),
    );
    let rows: Vec<SummaryRow> = prepared(query).load(conn).await?;
    let summary = |SummaryRow { rma_identifier, status, created_at, updated_at }| {
        let status = status.parse().map_err(unreadable)?;
        Ok(ReturnSummary { rma_identifier, status, created_at, updated_at })
    };
    rows.into_iter().map(summary).collect()
}
