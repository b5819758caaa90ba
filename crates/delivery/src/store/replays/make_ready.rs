//! Makes settled deliveries ready again, and deletes them.

use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::message_kind::MessageKind;
use platform::{
    Timestamp,
    database::{DatabaseError, sql},
};
use uuid::Uuid;

use crate::store::schema::{deliveries, delivery_messages};
use crate::store::settle::unblock_next;

/// Whether to send a delivery again although a newer one of its ordering key superseded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Superseded {
    Skip,
    Send,
}

impl Superseded {
    pub(crate) fn forced(force: bool) -> Self {
        if force { Self::Send } else { Self::Skip }
    }
}

platform::rows! { struct ReadyId { id: Uuid } }

/// FOR KEY SHARE keeps [`delete_settled`] from deleting the message meanwhile. `LATERAL` and subqueries with `LIMIT`
/// find rows by their keys, see `claim`.
const MAKE_SETTLED_READY: &str = include_str!("make_settled_ready.sql");

/// Makes settled deliveries ready again and returns their ids. Deliveries that are not settled are
/// left alone, and so are superseded ones: their messages have the complete state, and a newer message of
/// their ordering key was delivered or is queued. A newer message that failed so far waits behind the older one.
pub(crate) async fn make_settled_ready(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    ids: &[Uuid],
    superseded: Superseded,
) -> Result<Vec<Uuid>, DatabaseError> {
    let blocked = match superseded {
        Superseded::Skip => {
            lock_ordering_keys(conn, ids).await?;
            block_successors(conn, ids).await?
        }
        Superseded::Send => Vec::new(),
    };
    let is_forced = superseded == Superseded::Send;
    let statement = sql(MAKE_SETTLED_READY, (ids, is_forced, now, kinds_with_complete_state()));
    let ready: Vec<ReadyId> = statement.load(conn).await?;
    if !blocked.is_empty() {
        let keys = blocked.iter().map(|key| (key.merchant.as_str(), key.ordering_key.as_str()));
        unblock_next(conn, now, keys.collect()).await?;
    }
    Ok(ready.into_iter().map(|ready| ready.id).collect())
}

/// The replay number of an unsettled delivery: 0 for a new one, 1 for the first replay.
pub(crate) async fn replay_number(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<i32, DatabaseError> {
    Ok(deliveries::table.find(id).select(deliveries::replay_number).first(conn).await?)
}

fn kinds_with_complete_state() -> Vec<&'static str> {
    let complete = MessageKind::ALL.into_iter().filter(|kind| kind.has_complete_state());
    complete.map(MessageKind::name).collect()
}

/// Locks the ordering keys of these messages against appends until the transaction ends. The order is
/// by bytes, as in `append`.
async fn lock_ordering_keys(
    conn: &mut AsyncPgConnection,
    ids: &[Uuid],
) -> Result<(), DatabaseError> {
    sql(include_str!("lock_ordering_keys.sql"), ids).execute(conn).await?;
    Ok(())
}

platform::rows! {
    struct OrderingKey {
        merchant: String,
        ordering_key: String,
    }
}

/// Blocks ready deliveries behind messages that are about to be ready again. The dispatcher does not
/// see these before they are committed, and would claim their successors meanwhile.
async fn block_successors(
    conn: &mut AsyncPgConnection,
    ids: &[Uuid],
) -> Result<Vec<OrderingKey>, DatabaseError> {
    Ok(sql(include_str!("block_successors.sql"), ids).load(conn).await?)
}

/// Whether a delivery is neither delivered nor dead.
pub(crate) async fn is_pending(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<bool, DatabaseError> {
    let unsettled = diesel::dsl::exists(deliveries::table.find(id));
    Ok(diesel::select(unsettled).get_result(conn).await?)
}

/// Deletes the message of a settled delivery, so that it cannot be replayed. Returns false if the
/// delivery is not settled.
pub(crate) async fn delete_settled(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<bool, DatabaseError> {
    let message = delivery_messages::table.find(id);
    // A replay holds a lock on the message until its delivery is visible, so the lock comes first.
    let _locked: Option<Uuid> =
        message.select(delivery_messages::id).for_update().first(conn).await.optional()?;
    if is_pending(conn, id).await? {
        return Ok(false);
    }
    diesel::delete(message).execute(conn).await?;
    Ok(true)
}
