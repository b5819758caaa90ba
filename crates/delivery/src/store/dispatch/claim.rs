//! Claims due deliveries for the broker.
//!
//! Only the first unsettled delivery of an ordering key is ever claimed. A delivery that stands behind
//! another is blocked, so that later claims skip it; settling its predecessor makes it ready again.
//! A delivery that becomes ready too early does no harm: the next claim blocks it again.
//!
//! Statements name the rows to change by an array of ids and never by a join. A plan made while the
//! table was empty stays cached for a while, and its join would read the whole table once it is full.

use std::collections::HashSet;
use std::time::Duration;

use chrono::TimeDelta;
use diesel::QueryableByName;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    MAX_BATCH_BYTES, Timestamp, chain,
    database::{DatabaseError, column, prepared, sql},
};
use uuid::Uuid;

use crate::store::EndpointKey;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimParams {
    pub(crate) now: Timestamp,
    pub(crate) lease: Duration,
}

impl ClaimParams {
    pub(crate) fn leased_until(&self) -> Timestamp {
        let lease = TimeDelta::from_std(self.lease).unwrap_or(TimeDelta::MAX);
        self.now.checked_add_signed(lease).unwrap_or(Timestamp::MAX_UTC)
    }
}

/// An endpoint whose deliveries may be claimed.
#[derive(Clone, Debug)]
pub(crate) struct ClaimableEndpoint {
    pub(crate) key: EndpointKey,
    /// No ready delivery of the endpoint is due before this time.
    pub(crate) none_due_before: Timestamp,
    pub(crate) max_messages: u32,
}

platform::rows! {
    /// A due delivery as the claim found it: queued now, behind another of its ordering key, or locked or changed by
    /// another transaction.
    pub(crate) struct DueDelivery {
        pub(crate) id: Uuid,
        pub(crate) merchant: String,
        pub(crate) kind: String,
        pub(crate) next_attempt_at: Timestamp,
        pub(crate) sequence: i64,
        pub(crate) replay_number: i32,
        pub(crate) attempts: i32,
        pub(crate) releases: i32,
        is_behind_another: bool,
        /// Queued, or postponed because its message is missing.
        is_changed: bool,
        /// Number of due deliveries, also of those that did not fit into the batch.
        due_count: i64,
        /// None for a delivery behind another, and for one whose message is missing.
        #[diesel(embed)]
        content: Option<Content>,
    }
}

impl DueDelivery {
    pub(crate) fn endpoint(&self) -> EndpointKey {
        (self.merchant.clone(), self.kind.clone())
    }
}

platform::rows! {
    /// Message content of a claimed delivery.
    pub(crate) struct Content {
        pub(crate) version: i32,
        pub(crate) event: String,
        pub(crate) body: Vec<u8>,
        pub(crate) traceparent: Option<String>,
    }
}

#[derive(Default)]
pub(crate) struct ClaimedBatch {
    /// Queued from now on, in rounds with one delivery of each endpoint.
    pub(crate) claimed: Vec<(DueDelivery, Content)>,
    /// Endpoint and time of each due delivery that was found.
    pub(crate) found: Vec<(EndpointKey, Timestamp)>,
    /// Number of due deliveries that were blocked instead. If there were any, more may be due.
    pub(crate) blocked: usize,
    /// Endpoints with a delivery that was found, but stays ready and due.
    pub(crate) to_check_again: HashSet<EndpointKey>,
    /// Deliveries of any of the endpoints may be left, because the batch was full.
    pub(crate) is_batch_full: bool,
}

/// Marks due deliveries as queued and returns them with their content, in one statement, so that none
/// is marked and not returned. A delivery whose message is missing is postponed by a lease; it delays
/// only its own ordering key.
pub(crate) async fn claim_due(
    conn: &mut AsyncPgConnection,
    params: ClaimParams,
    endpoints: &[ClaimableEndpoint],
) -> Result<ClaimedBatch, DatabaseError> {
    let due: Vec<DueDelivery> = prepared(sql(
        CLAIM_DUE,
        (
            params.now,
            params.leased_until(),
            column(endpoints, |endpoint| endpoint.key.0.as_str()),
            column(endpoints, |endpoint| endpoint.key.1.as_str()),
            column(endpoints, |endpoint| endpoint.none_due_before),
            column(endpoints, |endpoint| i64::from(endpoint.max_messages)),
            i64::try_from(MAX_BATCH_BYTES).unwrap_or(i64::MAX),
        ),
    ))
    .load(conn)
    .await?;
    let is_batch_full =
        <[_]>::first(&due).is_some_and(|first| usize::try_from(first.due_count) != Ok(due.len()));
    let mut claims = ClaimedBatch { is_batch_full, ..ClaimedBatch::default() };
    let mut to_block = Vec::new();
    for mut due in due {
        claims.found.push((due.endpoint(), due.next_attempt_at));
        match due.content.take() {
            _ if due.is_behind_another => to_block.push(due),
            // Another transaction has locked the delivery, or has just changed it.
            _ if !due.is_changed => drop(claims.to_check_again.insert(due.endpoint())),
            Some(content) => claims.claimed.push((due, content)),
            None => {
                tracing::error!(delivery.id = %due.id, "the message of delivery {} is missing", due.id);
            }
        }
    }
    if !to_block.is_empty() {
        let ids = column(&to_block, |due| due.id);
        let blocked = block(conn, &ids).await.or_else(|error| {
            // Claimed deliveries must be published all the same; the others are found again.
            tracing::warn!(error = chain(&error), "deliveries behind others were not blocked");
            if claims.claimed.is_empty() { Err(error) } else { Ok(HashSet::new()) }
        })?;
        claims.blocked = blocked.len();
        let left = to_block.iter().filter(|due| !blocked.contains(&due.id));
        claims.to_check_again.extend(left.map(DueDelivery::endpoint));
    }
    Ok(claims)
}

/// `due` reads only the rows that it returns: a long backlog of one endpoint costs nothing.
///
/// It looks for earlier deliveries of the ordering key with ORDER BY, because only the index on
/// ordering keys has that order. An index on the merchant alone would read all its deliveries.
///
/// `rounds` numbers the deliveries of each endpoint, and the batch takes one of each endpoint in a round, in
/// the order in which they are given. If a batch is full before it reaches an endpoint, the caller gives that
/// endpoint first the next time.
///
/// `sized` finds each message with `LATERAL` and `LIMIT`: a join that was planned while a partition was empty
/// would read the whole partition for each delivery.
///
/// `locked` leaves out rows that another transaction has locked: waiting for one would delay all endpoints. It
/// and the updates check the state again, because a row may have changed since the statement began.
/// `IS TRUE` keeps the planner from finding rows by that condition.
const CLAIM_DUE: &str = include_str!("claim_due.sql");

/// The statement locks the first delivery of the ordering key, so the transaction that settles that
/// delivery afterwards sees the blocked ones. A delivery that is being settled now blocks no other, and a
/// delivery that another transaction has locked is not blocked.
const BLOCK: &str = include_str!("block_deliveries.sql");

platform::rows! { struct BlockedId { id: Uuid } }

/// Blocks deliveries behind the first of their ordering key, and returns their ids.
async fn block(conn: &mut AsyncPgConnection, ids: &[Uuid]) -> Result<HashSet<Uuid>, DatabaseError> {
    let statement = sql(BLOCK, ids);
    let blocked: Vec<BlockedId> = prepared(statement).load(conn).await?;
    Ok(blocked.into_iter().map(|blocked| blocked.id).collect())
}
