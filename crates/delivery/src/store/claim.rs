//! Claims due deliveries for the broker.
//!
//! Only the first unsettled delivery of an ordering key is ever claimed. A delivery that stands behind
//! another is blocked, so that later claims skip it; settling its predecessor makes it ready again.
//! A delivery that becomes ready too early does no harm: the next claim blocks it again.
//!
//! Statements name the rows to change by an array of ids and never by a join. A plan made while the
//! table was empty stays cached for a while, and its join would read the whole table once it is full.

use std::time::Duration;

use chrono::TimeDelta;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz};
use diesel::{QueryableByName, sql_query};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp, chain,
    database::{DatabaseError, prepared},
};
use uuid::Uuid;

/// A batch ends with the message that reaches this size.
const MAX_BATCH_BYTES: i64 = 8 * 1024 * 1024;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimParams<'a> {
    pub(crate) now: Timestamp,
    pub(crate) lease: Duration,
    /// Window size of an endpoint that has no row yet.
    pub(crate) initial_window: i32,
    /// Merchants and kinds of the paused endpoints.
    pub(crate) paused: (&'a [String], &'a [String]),
    pub(crate) max_messages: i64,
}

impl ClaimParams<'_> {
    pub(crate) fn leased_until(&self) -> Timestamp {
        let lease = TimeDelta::from_std(self.lease).unwrap_or(TimeDelta::MAX);
        self.now.checked_add_signed(lease).unwrap_or(Timestamp::MAX_UTC)
    }
}

/// A due delivery: now queued, or found behind another of its ordering key.
#[derive(QueryableByName)]
pub(crate) struct ClaimedDelivery {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    pub(crate) id: Uuid,
    #[diesel(sql_type = Text)]
    pub(crate) merchant: String,
    #[diesel(sql_type = Text)]
    pub(crate) kind: String,
    #[diesel(sql_type = BigInt)]
    pub(crate) sequence: i64,
    #[diesel(sql_type = Integer)]
    pub(crate) replay_number: i32,
    #[diesel(sql_type = Integer)]
    pub(crate) attempts: i32,
    #[diesel(sql_type = Integer)]
    pub(crate) requeues: i32,
    #[diesel(sql_type = Bool)]
    is_behind_another: bool,
    /// None for a delivery behind another, and for one whose message is missing.
    #[diesel(embed)]
    content: Option<Content>,
}

/// Message content of a claimed delivery.
#[derive(QueryableByName)]
pub(crate) struct Content {
    #[diesel(sql_type = Text)]
    pub(crate) event: String,
    #[diesel(sql_type = Binary)]
    pub(crate) body: Vec<u8>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) traceparent: Option<String>,
}

pub(crate) struct Claims {
    /// Queued from now on, longest due first.
    pub(crate) claimed: Vec<(ClaimedDelivery, Content)>,
    /// Number of due deliveries that were blocked instead. If there were any, more may be due.
    pub(crate) blocked: usize,
}

/// Marks due deliveries as queued and returns them with their content, in one statement, so that none
/// is marked and not returned. A delivery whose message is missing is postponed by a lease; it delays
/// only its own ordering key.
pub(crate) async fn claim_due(
    conn: &mut AsyncPgConnection,
    params: ClaimParams<'_>,
) -> Result<Claims, DatabaseError> {
    let due: Vec<ClaimedDelivery> = prepared(
        sql_query(CLAIM_DUE)
            .bind::<Timestamptz, _>(params.now)
            .bind::<Timestamptz, _>(params.leased_until())
            .bind::<Integer, _>(params.initial_window)
            .bind::<Array<Text>, _>(params.paused.0)
            .bind::<Array<Text>, _>(params.paused.1)
            .bind::<BigInt, _>(params.max_messages)
            .bind::<BigInt, _>(MAX_BATCH_BYTES),
    )
    .load(conn)
    .await?;
    let (mut claimed, mut to_block) = (Vec::with_capacity(due.len()), Vec::new());
    for mut due in due {
        match due.content.take() {
            _ if due.is_behind_another => to_block.push(due.id),
            Some(content) => claimed.push((due, content)),
            None => {
                tracing::error!(delivery.id = %due.id, "the message of delivery {} is missing", due.id);
            }
        }
    }
    let blocked = if to_block.is_empty() { Ok(0) } else { block(conn, to_block).await };
    match blocked {
        Ok(blocked) => Ok(Claims { claimed, blocked }),
        // Claimed deliveries must be published all the same; the others are found again.
        Err(error) if !claimed.is_empty() => {
            tracing::warn!(error = chain(&error), "deliveries behind others were not blocked");
            Ok(Claims { claimed, blocked: 0 })
        }
        Err(error) => Err(error),
    }
}

/// `endpoints` skips through the index, so a long backlog of one endpoint does not slow the others.
///
/// `open` leaves out an endpoint before its `not_before` only while its probes fail. Otherwise
/// `not_before` is the time of its last response, by a clock that may be ahead of this one.
///
/// `due` looks for earlier deliveries of the ordering key with ORDER BY, because only the index on
/// ordering keys has that order. An index on the merchant alone would read all its deliveries.
///
/// `sized` joins messages by merchant as well as by id: a plan made while a partition was empty may
/// use either index, and by id alone one of them would be read from end to end.
///
/// The updates check the state again, because a row may be settled while they wait for its lock.
/// `IS TRUE` keeps the planner from finding rows by that condition.
const CLAIM_DUE: &str = "WITH RECURSIVE endpoints (merchant, kind) AS ( \
     (SELECT merchant, kind FROM deliveries ORDER BY merchant, kind LIMIT 1) \
     UNION ALL \
     SELECT next.merchant, next.kind FROM endpoints, LATERAL ( \
         SELECT merchant, kind FROM deliveries \
         WHERE (merchant, kind) > (endpoints.merchant, endpoints.kind) \
         ORDER BY merchant, kind LIMIT 1 \
     ) AS next \
 ), open AS ( \
     SELECT merchant, kind, COALESCE(endpoint.window_size, $3) - ( \
         SELECT count(*) FROM deliveries AS queued \
         WHERE queued.merchant = endpoints.merchant AND queued.kind = endpoints.kind \
         AND queued.state = 'queued' \
     ) AS free_slots \
     FROM endpoints LEFT JOIN delivery_endpoints AS endpoint USING (merchant, kind) \
     WHERE (merchant, kind) NOT IN (SELECT * FROM unnest($4, $5)) \
     AND endpoint.disabled_at_version IS NULL \
     AND COALESCE(endpoint.failed_probes = 0 OR endpoint.not_before <= $1, true) \
 ), due AS ( \
     SELECT due.* FROM open, LATERAL ( \
         SELECT *, ( \
             SELECT true FROM deliveries AS earlier \
             WHERE earlier.merchant = ready.merchant AND earlier.ordering_key = ready.ordering_key \
             AND earlier.sequence < ready.sequence ORDER BY earlier.sequence LIMIT 1 \
         ) IS TRUE AS is_behind_another \
         FROM deliveries AS ready \
         WHERE ready.merchant = open.merchant AND ready.kind = open.kind \
         AND ready.state = 'ready' AND ready.next_attempt_at <= $1 \
         ORDER BY ready.next_attempt_at LIMIT GREATEST(open.free_slots, 0) \
     ) AS due \
     ORDER BY due.next_attempt_at LIMIT $6 \
 ), sized AS ( \
     SELECT due.*, message.event, message.body, message.traceparent, \
     sum(octet_length(message.body)) OVER (ORDER BY due.next_attempt_at, due.id) \
     - octet_length(message.body) AS bytes_before \
     FROM due LEFT JOIN delivery_messages AS message \
     ON message.id = due.id AND message.merchant = due.merchant AND NOT due.is_behind_another \
 ), candidates AS ( \
     SELECT * FROM sized WHERE bytes_before IS NULL OR bytes_before < $7 \
 ), claimed AS ( \
     UPDATE deliveries SET state = 'queued', leased_until = $2 WHERE id = ANY ( \
         ARRAY (SELECT id FROM candidates WHERE NOT is_behind_another AND body IS NOT NULL) \
     ) AND (state = 'ready' AND next_attempt_at <= $1) IS TRUE RETURNING id \
 ), postponed AS ( \
     UPDATE deliveries SET next_attempt_at = $2 WHERE id = ANY ( \
         ARRAY (SELECT id FROM candidates WHERE NOT is_behind_another AND body IS NULL) \
     ) AND (state = 'ready' AND next_attempt_at <= $1) IS TRUE \
 ) \
 SELECT id, merchant, kind, sequence, replay_number, attempts, requeues, is_behind_another, \
 event, body, traceparent \
 FROM candidates WHERE is_behind_another OR body IS NULL OR id IN (SELECT id FROM claimed) \
 ORDER BY next_attempt_at, id";

/// The statement locks the first delivery of the ordering key, so the transaction that settles that
/// delivery afterwards sees the blocked ones. A delivery that is being settled now blocks no other.
const BLOCK: &str = "WITH behind AS MATERIALIZED ( \
     SELECT later.id FROM deliveries AS later, LATERAL ( \
         SELECT FROM deliveries AS first \
         WHERE first.merchant = later.merchant AND first.ordering_key = later.ordering_key \
         AND first.sequence < later.sequence \
         ORDER BY first.sequence LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED \
     ) AS first \
     WHERE later.id = ANY ($1) \
 ) \
 UPDATE deliveries SET state = 'blocked' \
 WHERE id = ANY (ARRAY (SELECT id FROM behind)) AND state = 'ready'";

/// Blocks deliveries behind the first of their ordering key.
async fn block(conn: &mut AsyncPgConnection, ids: Vec<Uuid>) -> Result<usize, DatabaseError> {
    let statement = sql_query(BLOCK).bind::<Array<diesel::sql_types::Uuid>, _>(ids);
    Ok(prepared(statement).execute(conn).await?)
}
