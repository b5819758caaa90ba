//! Leases of queued deliveries: released, expired, or still valid.

use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::Timestamptz;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, prepared},
};
use uuid::Uuid;

use super::schema::deliveries;
use crate::queue_message::DUPLICATE_WINDOW;

/// Makes queued deliveries ready again that were not sent. If the broker has copies after all, senders
/// treat them as possible duplicates by the time these are due: see [`DUPLICATE_WINDOW`].
pub(crate) async fn release_claim(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    ids: &[Uuid],
) -> Result<(), DatabaseError> {
    let queued = deliveries::id.eq_any(ids).and(deliveries::state.eq("queued"));
    diesel::update(deliveries::table.filter(queued))
        .set((
            deliveries::state.eq("ready"),
            deliveries::leased_until.eq(None::<Timestamp>),
            deliveries::next_attempt_at.eq(now + DUPLICATE_WINDOW),
            deliveries::requeues.eq(deliveries::requeues + 1),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

/// The window bounds the queued deliveries of an endpoint, so this reads few rows.
const EXPIRE_LEASES: &str = "WITH RECURSIVE endpoints (merchant, kind) AS ( \
     (SELECT merchant, kind FROM deliveries ORDER BY merchant, kind LIMIT 1) \
     UNION ALL \
     SELECT next.merchant, next.kind FROM endpoints, LATERAL ( \
         SELECT merchant, kind FROM deliveries \
         WHERE (merchant, kind) > (endpoints.merchant, endpoints.kind) \
         ORDER BY merchant, kind LIMIT 1 \
     ) AS next \
 ), expired AS MATERIALIZED ( \
     SELECT expired.id FROM endpoints, LATERAL ( \
         SELECT id FROM deliveries AS queued \
         WHERE queued.merchant = endpoints.merchant AND queued.kind = endpoints.kind \
         AND queued.state = 'queued' AND queued.leased_until <= $1 \
         FOR UPDATE SKIP LOCKED \
     ) AS expired \
 ) \
 UPDATE deliveries SET state = 'ready', leased_until = NULL, requeues = requeues + 1 \
 WHERE id = ANY (ARRAY (SELECT id FROM expired)) AND state = 'queued'";

/// Makes deliveries ready again whose lease expired: the broker lost them, or their sender died.
pub(crate) async fn expire_leases(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
) -> Result<usize, DatabaseError> {
    let statement = sql_query(EXPIRE_LEASES).bind::<Timestamptz, _>(now);
    Ok(prepared(statement).execute(conn).await?)
}

/// A queued delivery and its number of finished attempts.
#[derive(Debug, PartialEq, Eq, Hash, Queryable, Selectable)]
#[diesel(table_name = deliveries)]
pub(crate) struct Queued {
    pub(crate) id: Uuid,
    pub(crate) replay_number: i32,
    pub(crate) attempts: i32,
}

/// Returns the deliveries among `ids` that are still queued.
pub(crate) async fn still_queued(
    conn: &mut AsyncPgConnection,
    ids: &[Uuid],
) -> Result<Vec<Queued>, DatabaseError> {
    let queued = deliveries::id.eq_any(ids).and(deliveries::state.eq("queued"));
    Ok(deliveries::table.filter(queued).select(Queued::as_select()).load(conn).await?)
}
