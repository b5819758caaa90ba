//! Putting settled messages back on the way, once or by the thousand.

use diesel::sql_types::{Array, BigInt, Bool, Integer, Jsonb, Nullable, Text, Timestamptz};
use diesel::{OptionalExtension, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};
use serde_json::Value;
use uuid::Uuid;

use super::search::{Filter, oldest_first};
use super::settle::release;
use super::unreadable;

/// Whether a message that a newer one of its ordering_key has overtaken is sent all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Superseded {
    Skipped,
    SentToo,
}

/// A message, or a replay.
#[derive(QueryableByName)]
struct Named {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    id: Uuid,
}

/// Makes settled messages ready again and returns those it did. One that is under way already, or
/// has been overtaken, is left alone: a newer one of its ordering_key was delivered or is being sent. One that
/// was tried in vain waits behind it.
pub(crate) async fn revive(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    ids: &[Uuid],
    overtaken: Superseded,
) -> Result<Vec<Uuid>, DatabaseError> {
    let held = match overtaken {
        Superseded::Skipped => {
            lock_lanes(conn, ids).await?;
            hold_successors(conn, ids).await?
        }
        Superseded::SentToo => Vec::new(),
    };
    let revived: Vec<Named> = diesel::sql_query(
        "INSERT INTO deliveries (id, merchant, kind, ordering_key, sequence, state, due_at, round) \
         SELECT id, merchant, kind, ordering_key, sequence, 'ready', $3, 1 + ( \
             SELECT max(round) FROM delivery_attempts WHERE delivery = m.id) \
         FROM ( \
             SELECT id, merchant, kind, ordering_key, sequence FROM delivery_messages \
             WHERE id = ANY ($1) ORDER BY id FOR KEY SHARE \
         ) AS m WHERE EXISTS (SELECT FROM delivery_attempts WHERE delivery = m.id) \
         AND ($2 OR m.ordering_key IS NULL OR NOT EXISTS ( \
             SELECT FROM delivery_messages AS newer \
             WHERE newer.merchant = m.merchant AND newer.ordering_key = m.ordering_key \
             AND newer.sequence > m.sequence AND ( \
                 EXISTS (SELECT FROM delivery_attempts AS attempt \
                         WHERE attempt.delivery = newer.id AND attempt.settled = 'delivered') \
                 OR EXISTS (SELECT FROM deliveries AS row \
                            WHERE row.id = newer.id AND row.state = 'queued')))) \
         ON CONFLICT DO NOTHING RETURNING id",
    )
    .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
    .bind::<Bool, _>(overtaken == Superseded::SentToo)
    .bind::<Timestamptz, _>(now)
    .load(conn)
    .await?;
    if !held.is_empty() {
        let ordering_keys =
            held.iter().map(|held| (held.merchant.as_str(), held.ordering_key.as_str()));
        release(conn, ordering_keys.collect()).await?;
    }
    Ok(revived.into_iter().map(|revived| revived.id).collect())
}

/// Keeps the ordering_keys of these messages as they are until the transaction ends: whoever adds to one waits,
/// or was waited for. In the order of bytes, in which they are counted: see `append`.
async fn lock_lanes(conn: &mut AsyncPgConnection, ids: &[Uuid]) -> Result<(), DatabaseError> {
    diesel::sql_query(
        "SELECT FROM delivery_ordering_keys AS known WHERE (merchant, ordering_key) IN ( \
             SELECT merchant, ordering_key FROM delivery_messages WHERE id = ANY ($1) \
         ) ORDER BY merchant COLLATE \"C\", ordering_key COLLATE \"C\" FOR UPDATE OF known",
    )
    .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
    .execute(conn)
    .await?;
    Ok(())
}

/// A ordering_key of which something is held.
#[derive(QueryableByName)]
struct OrderingKey {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    ordering_key: String,
}

/// Holds what is ready behind messages that are about to be ready themselves. The dispatcher does not
/// see those before they are committed, and would queue their successors meanwhile.
async fn hold_successors(
    conn: &mut AsyncPgConnection,
    ids: &[Uuid],
) -> Result<Vec<OrderingKey>, DatabaseError> {
    Ok(diesel::sql_query(
        "UPDATE deliveries SET state = 'held' WHERE id = ANY (ARRAY ( \
             SELECT later.id FROM delivery_messages AS m, deliveries AS later \
             WHERE m.id = ANY ($1) AND later.merchant = m.merchant AND later.ordering_key = m.ordering_key \
             AND later.sequence > m.sequence AND later.state = 'ready' \
         )) AND state = 'ready' RETURNING merchant, ordering_key",
    )
    .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
    .load(conn)
    .await?)
}

/// Takes a settled message out of the log, so that nothing can send it any more. Returns whether it
/// is out; one that is under way is left alone.
pub(crate) async fn withdraw(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<bool, DatabaseError> {
    let about = |query: &str| diesel::sql_query(query).bind::<diesel::sql_types::Uuid, _>(id);
    // Whoever revives it holds on to it until it is under way: locked first, then looked for.
    about("SELECT FROM delivery_messages WHERE id = $1 FOR UPDATE").execute(conn).await?;
    let under_way = about("SELECT id FROM deliveries WHERE id = $1");
    if under_way.get_result::<Named>(conn).await.optional()?.is_some() {
        return Ok(false);
    }
    about("DELETE FROM delivery_messages WHERE id = $1").execute(conn).await?;
    Ok(true)
}

/// A replay, who asked for it and how far it came.
#[derive(Debug, QueryableByName)]
pub(crate) struct Replay {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    pub(crate) id: Uuid,
    #[diesel(sql_type = Text)]
    pub(crate) requested_by: String,
    #[diesel(sql_type = Jsonb)]
    pub(crate) filter: Value,
    #[diesel(sql_type = Bool)]
    pub(crate) force: bool,
    #[diesel(sql_type = Integer)]
    pub(crate) per_second: i32,
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    pub(crate) last_seen: Uuid,
    #[diesel(sql_type = BigInt)]
    pub(crate) replayed: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) skipped: i64,
    #[diesel(sql_type = Timestamptz)]
    pub(crate) created_at: Timestamp,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(crate) finished_at: Option<Timestamp>,
}

pub(crate) async fn keep_replay(
    conn: &mut AsyncPgConnection,
    replay: &Replay,
) -> Result<(), DatabaseError> {
    diesel::sql_query(
        "INSERT INTO delivery_replays \
         (id, requested_by, filter, force, per_second, last_seen, created_at, advanced_at, \
         replayed, finished_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9)",
    )
    .bind::<diesel::sql_types::Uuid, _>(replay.id)
    .bind::<Text, _>(&replay.requested_by)
    .bind::<Jsonb, _>(&replay.filter)
    .bind::<Bool, _>(replay.force)
    .bind::<Integer, _>(replay.per_second)
    .bind::<diesel::sql_types::Uuid, _>(replay.last_seen)
    .bind::<Timestamptz, _>(replay.created_at)
    .bind::<BigInt, _>(replay.replayed)
    .bind::<Nullable<Timestamptz>, _>(replay.finished_at)
    .execute(conn)
    .await?;
    Ok(())
}

pub(crate) async fn find_replay(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<Option<Replay>, DatabaseError> {
    let query = diesel::sql_query("SELECT * FROM delivery_replays WHERE id = $1");
    Ok(query.bind::<diesel::sql_types::Uuid, _>(id).get_result(conn).await.optional()?)
}

/// The first replay after `after` that is not finished and has rested for a second.
pub(crate) async fn next_replay(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    after: Uuid,
) -> Result<Option<Uuid>, DatabaseError> {
    let next = diesel::sql_query(format!(
        "SELECT id FROM delivery_replays WHERE {RESTED} AND id > $2 ORDER BY id LIMIT 1"
    ));
    let next = next.bind::<Timestamptz, _>(now).bind::<diesel::sql_types::Uuid, _>(after);
    Ok(next.get_result::<Named>(conn).await.optional()?.map(|next| next.id))
}

/// Replays say how much they may do in a second, however many processes look at them.
const RESTED: &str = "finished_at IS NULL AND advanced_at <= $1 - INTERVAL '1 second'";

/// Takes the next second's worth of a replay, in the caller's transaction, unless another process
/// just did. Progress commits with the work, so a replay goes on where it was.
pub(crate) async fn advance(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    id: Uuid,
) -> Result<bool, DatabaseError> {
    let rested = diesel::sql_query(format!(
        "SELECT * FROM delivery_replays WHERE {RESTED} AND id = $2 FOR UPDATE SKIP LOCKED"
    ));
    let rested = rested.bind::<Timestamptz, _>(now).bind::<diesel::sql_types::Uuid, _>(id);
    let Some(replay) = rested.get_result::<Replay>(conn).await.optional()? else {
        return Ok(false);
    };
    let filter: Filter = serde_json::from_value(replay.filter).map_err(unreadable)?;
    let wanted = i64::from(replay.per_second);
    let found = oldest_first(conn, &filter, replay.last_seen, wanted).await?;
    let ids: Vec<_> = found.iter().map(|found| found.id).collect();
    let overtaken = if replay.force { Superseded::SentToo } else { Superseded::Skipped };
    let revived = revive(conn, now, &ids, overtaken).await?;
    let complete = i64::try_from(found.len()).unwrap_or_default() < wanted;
    diesel::sql_query(
        "UPDATE delivery_replays SET last_seen = $2, replayed = replayed + $3, \
         skipped = skipped + $4, finished_at = $5, advanced_at = $6 WHERE id = $1",
    )
    .bind::<diesel::sql_types::Uuid, _>(replay.id)
    .bind::<diesel::sql_types::Uuid, _>(ids.last().copied().unwrap_or(replay.last_seen))
    .bind::<BigInt, _>(i64::try_from(revived.len()).unwrap_or_default())
    .bind::<BigInt, _>(i64::try_from(ids.len() - revived.len()).unwrap_or_default())
    .bind::<Nullable<Timestamptz>, _>(complete.then_some(now))
    .bind::<Timestamptz, _>(now)
    .execute(conn)
    .await?;
    Ok(true)
}
