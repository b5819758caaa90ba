//! Leases of queued deliveries: released, expired, or still valid.

use std::collections::HashMap;

use diesel::prelude::*;
use diesel::sql_query;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, prepared, sql},
};
use uuid::Uuid;

use crate::queue_message::RELEASED_CLAIM_DELAY;
use crate::store::schema::deliveries;

/// Makes queued deliveries ready again that were not sent. If the broker has copies after all, senders
/// treat them as possible duplicates by the time these are due: see [`RELEASED_CLAIM_DELAY`].
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
            deliveries::next_attempt_at.eq(now + RELEASED_CLAIM_DELAY),
            deliveries::releases.eq(deliveries::releases + 1),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

/// `IS TRUE` keeps the planner from finding rows by that condition, see `claim`.
const EXPIRE_LEASES: &str = include_str!("expire_leases.sql");

/// Makes those of the deliveries ready again whose lease expired: the broker lost them, or their sender died.
/// They are due now: polls find deliveries by the time at which they became due, and have read earlier times
/// already. Deliveries that another transaction has locked are left out; the dispatcher finds them again among
/// the queued ones.
pub(crate) async fn expire_leases(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    ids: &[Uuid],
) -> Result<usize, DatabaseError> {
    Ok(prepared(sql(EXPIRE_LEASES, (ids, now))).execute(conn).await?)
}

platform::rows! {
    /// A queued delivery, its endpoint and its lease.
    #[derive(Debug)]
    pub(crate) struct LeasedDelivery {
        pub(crate) id: Uuid,
        pub(crate) merchant: String,
        pub(crate) kind: String,
        pub(crate) leased_until: Timestamp,
    }
}

/// Returns all queued deliveries. The memory budget bounds their number.
pub(crate) async fn leased(
    conn: &mut AsyncPgConnection,
) -> Result<Vec<LeasedDelivery>, DatabaseError> {
    let statement =
        "SELECT id, merchant, kind, leased_until FROM deliveries WHERE state = 'queued'";
    Ok(prepared(sql_query(statement)).load(conn).await?)
}

/// A queued delivery, its number of finished attempts and its lease.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = deliveries)]
pub(crate) struct Queued {
    id: Uuid,
    pub(crate) replay_number: i32,
    pub(crate) attempts: i32,
    pub(crate) leased_until: Option<Timestamp>,
}

/// Returns the deliveries among `ids` that are still queued, by their ids.
pub(crate) async fn still_queued(
    conn: &mut AsyncPgConnection,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, Queued>, DatabaseError> {
    let queued = deliveries::id.eq_any(ids).and(deliveries::state.eq("queued"));
    let queued: Vec<_> =
        deliveries::table.filter(queued).select(Queued::as_select()).load(conn).await?;
    Ok(queued.into_iter().map(|queued| (queued.id, queued)).collect())
}
