//! Erasures and their progress.

use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_query;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::MerchantId;
use domain::erasure::{EmailDigest, ErasureConfirmed};
use platform::Timestamp;
use platform::database::{DatabaseError, prepared, sql};
use serde_json::json;
use uuid::Uuid;

use super::error::unreadable;

/// The services that confirm every batch.
const CONFIRMING_SERVICES: i64 = 3;

/// An erasure to be stored.
pub(crate) struct NewErasure<'a> {
    pub(crate) id: Uuid,
    pub(crate) merchant: &'a MerchantId,
    pub(crate) email: Option<&'a EmailDigest>,
    pub(crate) force: bool,
    pub(crate) force_before: Option<Timestamp>,
    pub(crate) requested_by: &'a str,
    pub(crate) orders: &'a [String],
    pub(crate) at: Timestamp,
}

/// Stores an erasure with its orders.
pub(crate) async fn insert_erasure(
    conn: &mut AsyncPgConnection,
    new: &NewErasure<'_>,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "INSERT INTO erasures (id, merchant, email_sha256, force, force_before, requested_by, state, \
             orders, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, 'running', $7, $8)",
        (
            new.id,
            new.merchant.as_str(),
            new.email.map(EmailDigest::as_str),
            new.force,
            new.force_before,
            new.requested_by,
            i64::try_from(new.orders.len()).unwrap_or(i64::MAX),
            new.at,
        ),
    );
    prepared(statement).execute(conn).await?;
    let statement = sql(
        "INSERT INTO erasure_orders (erasure, order_identifier) SELECT $1, * FROM unnest($2)",
        (new.id, new.orders),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// An erasure that is locked until the end of the transaction.
pub(crate) struct RunningErasure {
    pub(crate) id: Uuid,
    pub(crate) merchant: MerchantId,
    pub(crate) email: Option<EmailDigest>,
    pub(crate) force: bool,
    pub(crate) force_before: Option<Timestamp>,
    /// The batches that are done.
    pub(crate) batches: i32,
    /// Failures since the last batch.
    pub(crate) failures: i32,
}

platform::rows! {
    struct RunningRow {
        id: Uuid,
        merchant: String,
        email_sha256: Option<String>,
        force: bool,
        force_before: Option<Timestamp>,
        batches: i32,
        failures: i32,
    }
}

/// Locks the oldest running erasure that is due and that no other transaction has locked.
pub(crate) async fn lock_running(
    conn: &mut AsyncPgConnection,
) -> Result<Option<RunningErasure>, DatabaseError> {
    let query = sql_query(
        "SELECT id, merchant, email_sha256, force, force_before, batches, failures FROM erasures \
         WHERE state = 'running' AND (next_attempt_at IS NULL OR next_attempt_at <= now()) \
         ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
    );
    let row: Option<RunningRow> = prepared(query).get_result(conn).await.optional()?;
    let running = |row: RunningRow| {
        Ok(RunningErasure {
            id: row.id,
            merchant: row
                .merchant
                .parse()
                .map_err(unreadable::<domain::access::InvalidMerchantId>)?,
            email: row.email_sha256.map(EmailDigest::from),
            force: row.force,
            force_before: row.force_before,
            batches: row.batches,
            failures: row.failures,
        })
    };
    row.map(running).transpose()
}

/// Whether a running erasure is due.
pub(crate) async fn is_any_due(conn: &mut AsyncPgConnection) -> Result<bool, DatabaseError> {
    let query = sql_query(
        "SELECT 1 FROM erasures \
         WHERE state = 'running' AND (next_attempt_at IS NULL OR next_attempt_at <= now()) LIMIT 1",
    );
    Ok(prepared(query).execute(conn).await? > 0)
}

/// Lets an erasure that failed wait, by the clock of the database. One that failed and went on in another replica
/// meanwhile does not wait.
pub(crate) async fn postpone_erasure(
    conn: &mut AsyncPgConnection,
    erasure: &RunningErasure,
    backoff: Duration,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "UPDATE erasures SET failures = failures + 1, \
             next_attempt_at = now() + $3 * INTERVAL '1 millisecond' \
         WHERE id = $1 AND batches = $2 AND state = 'running'",
        (erasure.id, erasure.batches, i64::try_from(backoff.as_millis()).unwrap_or(i64::MAX)),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

platform::rows! { struct NameRow { order_identifier: String } }

/// The next orders of an erasure, sorted.
pub(crate) async fn next_orders(
    conn: &mut AsyncPgConnection,
    id: Uuid,
    limit: i64,
) -> Result<Vec<String>, DatabaseError> {
    let query = sql(
        "SELECT order_identifier FROM erasure_orders WHERE erasure = $1 AND NOT is_done \
         ORDER BY order_identifier LIMIT $2",
        (id, limit),
    );
    let rows: Vec<NameRow> = prepared(query).load(conn).await?;
    Ok(rows.into_iter().map(|row| row.order_identifier).collect())
}

/// Records a batch of a locked erasure, with the numbers of orders and events in which data was replaced.
pub(crate) async fn finish_batch(
    conn: &mut AsyncPgConnection,
    id: Uuid,
    orders: &[String],
    (erased_orders, erased_events): (usize, usize),
) -> Result<(), DatabaseError> {
    let statement = sql(
        "UPDATE erasure_orders SET is_done = true \
         WHERE erasure = $1 AND order_identifier = ANY ($2)",
        (id, orders),
    );
    prepared(statement).execute(conn).await?;
    let statement = sql(
        include_str!("finish_erasure_batch.sql"),
        (
            id,
            i64::try_from(erased_orders).unwrap_or(i64::MAX),
            i64::try_from(erased_events).unwrap_or(i64::MAX),
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Records the confirmation of a service. The lock makes the last of several concurrent ones see the others.
/// An erasure that a restored database does not have is ignored.
pub(crate) async fn confirm_erasure(
    conn: &mut AsyncPgConnection,
    confirmed: &ErasureConfirmed,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let id = confirmed.erasure_id;
    let lock = sql("SELECT 1 FROM erasures WHERE id = $1 FOR UPDATE", id);
    if lock.execute(conn).await? == 0 {
        return Ok(());
    }
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let insert = sql(
        "INSERT INTO erasure_confirmations \
             (erasure, batch, service, records, events, deliveries, kept_returns, confirmed_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
        (
            id,
            confirmed.batch,
            &confirmed.service,
            count(confirmed.counts.records),
            count(confirmed.counts.events),
            count(confirmed.counts.deliveries),
            json!(confirmed.kept_returns),
            now,
        ),
    );
    prepared(insert).execute(conn).await?;
    let kept: Vec<_> = confirmed.kept_returns.iter().map(|it| &it.order_identifier).collect();
    let update = sql(
        "UPDATE orders SET erased_at = NULL WHERE merchant = $1 AND identifier = ANY ($2)",
        (confirmed.merchant.as_str(), kept),
    );
    // Planned each time: a plan that was made while the table was empty would read all orders of the merchant.
    update.execute(conn).await?;
    let finish = sql(
        "UPDATE erasures SET state = 'finished', finished_at = $2 \
         WHERE id = $1 AND state = 'waiting' AND batches * $3 <= ( \
             SELECT count(*) FROM erasure_confirmations WHERE erasure = $1)",
        (id, now, CONFIRMING_SERVICES),
    );
    prepared(finish).execute(conn).await?;
    Ok(())
}
