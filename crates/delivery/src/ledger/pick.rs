//! Which messages go next, and what happens to those that went and were not heard of again.
//!
//! Only the first unsettled message of a ordering_key is ever queued. A message that is found behind
//! another is held, so that it is looked at once and not every time; settling its predecessor
//! makes it ready again. Ready too early does no harm: it is found behind the other once more.
//!
//! Rows to change are named by an array of ids and never by a join: a plan that was made while the
//! table was empty is kept for a while, and would join the other way round, reading the whole table
//! once it is full.

use std::time::Duration;

use chrono::TimeDelta;
use diesel::{
    OptionalExtension as _, QueryableByName, sql_query,
    sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp, chain,
    database::{DatabaseError, prepared},
};
use uuid::Uuid;

use crate::job::FRESH;

/// So many bytes are a batch, however few messages they are.
const MAX_BATCH_BYTES: i64 = 8 * 1024 * 1024;
/// So many ordering_keys are walked along at a time: however many there are, nobody waits for it.
const LANES_AT_ONCE: i64 = 1000;

/// What a look into the ledger rests on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due<'a> {
    pub(crate) now: Timestamp,
    /// A queued message that is not settled by then is sent again.
    pub(crate) lease: Duration,
    /// The window of an endpoint of which nothing is known yet.
    pub(crate) initial_window: i32,
    /// Endpoints that nothing is sent to, as merchants and kinds.
    pub(crate) closed: (&'a [String], &'a [String]),
    pub(crate) most: i64,
}

impl Due<'_> {
    pub(crate) fn lease_until(&self) -> Timestamp {
        let lease = TimeDelta::from_std(self.lease).unwrap_or(TimeDelta::MAX);
        self.now.checked_add_signed(lease).unwrap_or(Timestamp::MAX_UTC)
    }
}

/// A message that was picked and is now queued, or was found behind another of its ordering_key.
#[derive(QueryableByName)]
pub(crate) struct Picked {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    pub(crate) id: Uuid,
    #[diesel(sql_type = Text)]
    pub(crate) merchant: String,
    #[diesel(sql_type = Text)]
    pub(crate) kind: String,
    #[diesel(sql_type = BigInt)]
    pub(crate) sequence: i64,
    #[diesel(sql_type = Integer)]
    pub(crate) round: i32,
    #[diesel(sql_type = Integer)]
    pub(crate) attempts: i32,
    #[diesel(sql_type = Integer)]
    pub(crate) requeues: i32,
    #[diesel(sql_type = Bool)]
    blocked: bool,
    /// What it says: nothing, if it is blocked or if the log has lost it.
    #[diesel(embed)]
    content: Option<Content>,
}

/// What a message says.
#[derive(QueryableByName)]
pub(crate) struct Content {
    #[diesel(sql_type = Text)]
    pub(crate) event: String,
    #[diesel(sql_type = Binary)]
    pub(crate) body: Vec<u8>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) traceparent: Option<String>,
}

/// What a look found.
pub(crate) struct Look {
    /// Queued from now on, the longest due first.
    pub(crate) picked: Vec<(Picked, Content)>,
    /// How many were found behind another and held: there may be more to pick.
    pub(crate) held: usize,
}

/// Marks the messages that go next as queued and returns them with what they say: one statement,
/// so that none is marked and not returned. A message whose body is gone is looked at again when a
/// lease is over; it holds nobody up but its ordering_key.
pub(crate) async fn pick(
    conn: &mut AsyncPgConnection,
    due: Due<'_>,
) -> Result<Look, DatabaseError> {
    let found: Vec<Picked> = prepared(
        sql_query(PICK)
            .bind::<Timestamptz, _>(due.now)
            .bind::<Timestamptz, _>(due.lease_until())
            .bind::<Integer, _>(due.initial_window)
            .bind::<Array<Text>, _>(due.closed.0)
            .bind::<Array<Text>, _>(due.closed.1)
            .bind::<BigInt, _>(due.most)
            .bind::<BigInt, _>(MAX_BATCH_BYTES),
    )
    .load(conn)
    .await?;
    let (mut picked, mut blocked) = (Vec::with_capacity(found.len()), Vec::new());
    for mut found in found {
        match found.content.take() {
            _ if found.blocked => blocked.push(found.id),
            Some(content) => picked.push((found, content)),
            None => {
                tracing::error!(delivery.id = %found.id, "the body of delivery {} is gone", found.id);
            }
        }
    }
    let held = if blocked.is_empty() { Ok(0) } else { hold(conn, blocked).await };
    match held {
        Ok(held) => Ok(Look { picked, held }),
        // What was picked must go out all the same; the others are found again.
        Err(error) if !picked.is_empty() => {
            tracing::warn!(error = chain(&error), "messages behind others were not held");
            Ok(Look { picked, held: 0 })
        }
        Err(error) => Err(error),
    }
}

/// The endpoints are found by skipping through the index, so that a long backlog of one costs the
/// others nothing. A body is looked up by its merchant, too: a plan made while a day of the log was
/// empty may use either index, and with the id alone one of them would be read from end to end.
///
/// Only an endpoint whose probes fail is left alone: otherwise `not_before` is when it was last heard
/// of, by a clock that may be ahead of this one.
///
/// What stands before a message in its ordering_key is asked for in order, as everywhere: only the index of
/// ordering_keys has that order, and one that finds the merchant alone would read all its messages for each.
///
/// A row may be settled while this waits for its lock, when an older copy of the message is about:
/// then it is no longer due. `IS TRUE` keeps that from becoming a way to look the row up.
const PICK: &str = "WITH RECURSIVE endpoints (merchant, kind) AS ( \
     (SELECT merchant, kind FROM deliveries ORDER BY merchant, kind LIMIT 1) \
     UNION ALL \
     SELECT next.merchant, next.kind FROM endpoints, LATERAL ( \
         SELECT merchant, kind FROM deliveries \
         WHERE (merchant, kind) > (endpoints.merchant, endpoints.kind) \
         ORDER BY merchant, kind LIMIT 1 \
     ) AS next \
 ), open AS ( \
     SELECT merchant, kind, COALESCE(known.size, $3) - ( \
         SELECT count(*) FROM deliveries AS queued \
         WHERE queued.merchant = endpoints.merchant AND queued.kind = endpoints.kind \
         AND queued.state = 'queued' \
     ) AS room \
     FROM endpoints LEFT JOIN delivery_endpoints AS known USING (merchant, kind) \
     WHERE (merchant, kind) NOT IN (SELECT * FROM unnest($4, $5)) \
     AND known.disabled_at_version IS NULL \
     AND COALESCE(known.failed_probes = 0 OR known.not_before <= $1, true) \
 ), due AS ( \
     SELECT due.* FROM open, LATERAL ( \
         SELECT *, ( \
             SELECT true FROM deliveries AS earlier \
             WHERE earlier.merchant = ready.merchant AND earlier.ordering_key = ready.ordering_key \
             AND earlier.sequence < ready.sequence ORDER BY earlier.sequence LIMIT 1 \
         ) IS TRUE AS blocked \
         FROM deliveries AS ready \
         WHERE ready.merchant = open.merchant AND ready.kind = open.kind \
         AND ready.state = 'ready' AND ready.due_at <= $1 \
         ORDER BY ready.due_at LIMIT GREATEST(open.room, 0) \
     ) AS due \
     ORDER BY due.due_at LIMIT $6 \
 ), weighed AS ( \
     SELECT due.*, said.event, said.body, said.traceparent, \
     sum(octet_length(said.body)) OVER (ORDER BY due.due_at, due.id) \
     - octet_length(said.body) AS bytes_before \
     FROM due LEFT JOIN delivery_messages AS said \
     ON said.id = due.id AND said.merchant = due.merchant AND NOT due.blocked \
 ), candidates AS ( \
     SELECT * FROM weighed WHERE bytes_before IS NULL OR bytes_before < $7 \
 ), taken AS ( \
     UPDATE deliveries SET due_at = $2, state = 'queued' WHERE id = ANY ( \
         ARRAY (SELECT id FROM candidates WHERE NOT blocked AND body IS NOT NULL) \
     ) AND (state = 'ready' AND due_at <= $1) IS TRUE RETURNING id \
 ), put_off AS ( \
     UPDATE deliveries SET due_at = $2 WHERE id = ANY ( \
         ARRAY (SELECT id FROM candidates WHERE NOT blocked AND body IS NULL) \
     ) AND (state = 'ready' AND due_at <= $1) IS TRUE \
 ) \
 SELECT id, merchant, kind, sequence, round, attempts, requeues, blocked, event, body, traceparent \
 FROM candidates WHERE blocked OR body IS NULL OR id IN (SELECT id FROM taken) \
 ORDER BY due_at, id";

/// Holds messages back behind the first of their ordering_key. That one stays locked until it is done, so
/// whoever settles it sees what waits behind it; one that is being settled just now holds nobody.
async fn hold(conn: &mut AsyncPgConnection, ids: Vec<Uuid>) -> Result<usize, DatabaseError> {
    Ok(prepared(
        sql_query(
            "WITH behind AS MATERIALIZED ( \
                 SELECT later.id FROM deliveries AS later, LATERAL ( \
                     SELECT FROM deliveries AS first \
                     WHERE first.merchant = later.merchant AND first.ordering_key = later.ordering_key \
                     AND first.sequence < later.sequence \
                     ORDER BY first.sequence LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED \
                 ) AS first \
                 WHERE later.id = ANY ($1) \
             ) \
             UPDATE deliveries SET state = 'held' \
             WHERE id = ANY (ARRAY (SELECT id FROM behind)) AND state = 'ready'",
        )
        .bind::<Array<diesel::sql_types::Uuid>, _>(ids),
    )
    .execute(conn)
    .await?)
}

/// How far a walk along the ordering_keys came: the merchant and the ordering_key it looked at last.
pub(crate) type Walked = (String, String);

#[derive(QueryableByName)]
struct Head {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    ordering_key: String,
    #[diesel(sql_type = BigInt)]
    number: i64,
    #[diesel(sql_type = BigInt)]
    released: i64,
}

/// Makes messages ready that are held although they are the first of their ordering_key, and returns how
/// many. Two messages of a ordering_key may be settled at the same moment, when one of them was replayed by
/// force, or one while a replay holds what is behind it: each is then taken for what the next one
/// waits for. Looks at [`LANES_AT_ONCE`], and goes on from there the next time.
pub(crate) async fn unblock_heads(
    conn: &mut AsyncPgConnection,
    walked: &mut Walked,
) -> Result<i64, DatabaseError> {
    // Planned anew each time, with the values at hand.
    let last: Option<Head> = sql_query(
        "WITH RECURSIVE heads (merchant, ordering_key, id, state, number) AS ( \
             (SELECT merchant, ordering_key, id, state, 1::bigint FROM deliveries \
             WHERE ordering_key IS NOT NULL AND (merchant, ordering_key) > ($1, $2) \
             ORDER BY merchant, ordering_key, sequence LIMIT 1) \
             UNION ALL \
             SELECT next.*, heads.number + 1 FROM heads, LATERAL ( \
                 SELECT merchant, ordering_key, id, state FROM deliveries \
                 WHERE ordering_key IS NOT NULL AND (merchant, ordering_key) > (heads.merchant, heads.ordering_key) \
                 ORDER BY merchant, ordering_key, sequence LIMIT 1 \
             ) AS next \
             WHERE heads.number < $3 \
         ), released AS ( \
             UPDATE deliveries SET state = 'ready' WHERE id = ANY ( \
                 ARRAY (SELECT id FROM heads WHERE state = 'held') \
             ) AND state = 'held' RETURNING id \
         ) \
         SELECT merchant, ordering_key, number, (SELECT count(*) FROM released) AS released \
         FROM heads ORDER BY number DESC LIMIT 1",
    )
    .bind::<Text, _>(&walked.0)
    .bind::<Text, _>(&walked.1)
    .bind::<BigInt, _>(LANES_AT_ONCE)
    .get_result(conn)
    .await
    .optional()?;
    let released = last.as_ref().map_or(0, |last| last.released);
    *walked = match last {
        Some(last) if last.number >= LANES_AT_ONCE => (last.merchant, last.ordering_key),
        _ => Walked::default(),
    };
    Ok(released)
}

/// Makes messages ready again that were queued and not sent, as far as we know. If copies are in the
/// broker, they are asked about by the time that these are due: see [`FRESH`].
pub(crate) async fn release_claim(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    ids: &[Uuid],
) -> Result<(), DatabaseError> {
    prepared(
        sql_query(
            "UPDATE deliveries SET state = 'ready', due_at = $2, requeues = requeues + 1 \
             WHERE id = ANY ($1) AND state = 'queued'",
        )
        .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
        .bind::<Timestamptz, _>(now + FRESH),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Makes messages ready again whose lease is over: the broker lost them, or their sender died.
pub(crate) async fn expire_leases(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
) -> Result<usize, DatabaseError> {
    Ok(prepared(
        sql_query(
            "WITH RECURSIVE endpoints (merchant, kind) AS ( \
                 (SELECT merchant, kind FROM deliveries ORDER BY merchant, kind LIMIT 1) \
                 UNION ALL \
                 SELECT next.merchant, next.kind FROM endpoints, LATERAL ( \
                     SELECT merchant, kind FROM deliveries \
                     WHERE (merchant, kind) > (endpoints.merchant, endpoints.kind) \
                     ORDER BY merchant, kind LIMIT 1 \
                 ) AS next \
             ), lost AS MATERIALIZED ( \
                 SELECT late.id FROM endpoints, LATERAL ( \
                     SELECT id FROM deliveries AS queued \
                     WHERE queued.merchant = endpoints.merchant AND queued.kind = endpoints.kind \
                     AND queued.state = 'queued' AND queued.due_at <= $1 \
                     FOR UPDATE SKIP LOCKED \
                 ) AS late \
             ) \
             UPDATE deliveries SET state = 'ready', requeues = requeues + 1 \
             WHERE id = ANY (ARRAY (SELECT id FROM lost)) AND state = 'queued'",
        )
        .bind::<Timestamptz, _>(now),
    )
    .execute(conn)
    .await?)
}

/// A message that is queued, and which attempt it is queued for.
#[derive(Debug, PartialEq, Eq, Hash, QueryableByName)]
pub(crate) struct Queued {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    pub(crate) id: Uuid,
    #[diesel(sql_type = Integer)]
    pub(crate) round: i32,
    #[diesel(sql_type = Integer)]
    pub(crate) attempts: i32,
}

/// Of these, the ones that still wait to be sent.
pub(crate) async fn still_queued(
    conn: &mut AsyncPgConnection,
    ids: &[Uuid],
) -> Result<Vec<Queued>, DatabaseError> {
    Ok(prepared(
        sql_query(
            "SELECT id, round, attempts FROM deliveries WHERE id = ANY ($1) AND state = 'queued'",
        )
        .bind::<Array<diesel::sql_types::Uuid>, _>(ids),
    )
    .load(conn)
    .await?)
}
