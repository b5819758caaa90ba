//! Searches the message history step by step, newest or oldest first.
//!
//! An index offers candidates in the order of their ids: messages, failed attempts or unsettled deliveries,
//! of one merchant or of all. All other conditions are checked for each candidate, because an index for each
//! of them would slow every delivery. A page reads a limited number of candidates. It may then have few
//! deliveries or none, and its cursor continues the search.

use std::collections::BTreeSet;

use api::delivery::Filter;
use diesel_async::AsyncPgConnection;
use platform::database::DatabaseError;
use uuid::Uuid;

use super::candidates::{candidates, small_set};
use super::search::{DeliveryRow, IdOrder, id_range, matching, successor};

/// Limit on the candidates that one page of a list reads.
pub(crate) const MAX_SCANNED: i64 = 2000;
/// Limit on the candidates of one step of a replay.
const MAX_SCANNED_BY_REPLAY: i64 = 20_000;
/// Deliveries of an ordering key, or pending ones of a merchant, that are read at once.
pub(in crate::store) const MAX_SET: usize = 2000;
/// The deliveries of such a set that one step reads.
const SET_STEP: usize = 200;
/// Each step reads this many times the candidates of the step before.
const STEP_FACTOR: i64 = 4;

/// Deliveries that match a filter.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) rows: Vec<DeliveryRow>,
    /// The last candidate, if the search stopped at its limit and others may match. None if there are as
    /// many rows as wanted.
    pub(crate) scanned_to: Option<Uuid>,
}

/// Returns up to `limit` deliveries of a list. `after` is the last one of the previous page.
pub(crate) async fn list(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    order: IdOrder,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Scan, DatabaseError> {
    let (from, to) = id_range(filter);
    let range = match (order, after) {
        (_, None) => (from, to),
        (IdOrder::NewestFirst, Some(after)) => (from, to.min(after)),
        (IdOrder::OldestFirst, Some(after)) => (from.max(successor(after)), to),
    };
    scan(conn, filter, order, range, (limit, MAX_SCANNED)).await
}

/// Returns up to `limit` deliveries of a replay that are newer than `after`.
pub(crate) async fn oldest_first(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    after: Uuid,
    limit: i64,
) -> Result<Scan, DatabaseError> {
    let (from, to) = id_range(filter);
    let from = from.max(successor(after));
    scan(conn, filter, IdOrder::OldestFirst, (from, to), (limit, MAX_SCANNED_BY_REPLAY)).await
}

async fn scan(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    order: IdOrder,
    (mut from, mut to): (Uuid, Uuid),
    (limit, max_scanned): (i64, i64),
) -> Result<Scan, DatabaseError> {
    if let Some(set) = small_set(conn, filter, MAX_SET).await? {
        let mut set: Vec<_> = set.into_iter().filter(|id| (from..to).contains(id)).collect();
        if order == IdOrder::NewestFirst {
            set.reverse();
        }
        let rows = first_of_set(conn, filter, &set, order, limit).await?;
        return Ok(Scan { rows, scanned_to: None });
    }
    let mut rows = Vec::new();
    let mut scanned = 0;
    let mut step = limit;
    loop {
        let ids = candidates(conn, filter, order, (from, to), step).await?;
        let missing = limit - count(rows.len());
        let distinct: Vec<_> = ids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        rows.extend(matching(conn, filter, &distinct, order, missing).await?);
        scanned += step;
        let last = ids.last().copied().filter(|_| count(ids.len()) == step);
        let Some(last) = last.filter(|_| count(rows.len()) < limit) else {
            return Ok(Scan { rows, scanned_to: None });
        };
        if scanned >= max_scanned {
            return Ok(Scan { rows, scanned_to: Some(last) });
        }
        match order {
            IdOrder::NewestFirst => to = last,
            IdOrder::OldestFirst => from = successor(last),
        }
        step = (step * STEP_FACTOR).min(max_scanned - scanned);
    }
}

/// Returns the first of a sorted set that match.
async fn first_of_set(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    set: &[Uuid],
    order: IdOrder,
    limit: i64,
) -> Result<Vec<DeliveryRow>, DatabaseError> {
    let mut rows = Vec::new();
    for ids in set.chunks(SET_STEP) {
        let missing = limit - count(rows.len());
        rows.extend(matching(conn, filter, ids, order, missing).await?);
        if count(rows.len()) >= limit {
            break;
        }
    }
    Ok(rows)
}

pub(super) fn count(items: usize) -> i64 {
    i64::try_from(items).unwrap_or(i64::MAX)
}
