//! Counts of the deliveries that match a filter.

use std::collections::BTreeMap;

use api::delivery::Filter;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::database::DatabaseError;
use uuid::Uuid;

use super::candidates::{candidates, small_set};
use super::scan::{MAX_SET, count};
use super::search::{IdOrder, id_range, select, successor};

/// Candidates that one statement counts.
const STEP: i64 = 5000;

/// Number of matches, in all, by merchant and by kind.
#[derive(Debug, Default)]
pub(crate) struct MatchCounts {
    pub(crate) total: i64,
    pub(crate) by_merchant: BTreeMap<String, i64>,
    pub(crate) by_kind: BTreeMap<String, i64>,
    /// Whether the count stopped before it had read all candidates.
    pub(crate) is_truncated: bool,
}

platform::rows! {
    struct CountRow {
        merchant: String,
        kind: String,
        count: i64,
    }
}

/// Counts the deliveries that match a filter, oldest first, among up to `max_scanned` candidates.
pub(crate) async fn match_counts(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    max_scanned: i64,
) -> Result<MatchCounts, DatabaseError> {
    let mut counts = MatchCounts::default();
    let (mut from, to) = id_range(filter);
    if let Some(set) = small_set(conn, filter, MAX_SET).await? {
        let set: Vec<_> = set.into_iter().filter(|id| (from..to).contains(id)).collect();
        counts.add(conn, filter, &set).await?;
        return Ok(counts);
    }
    for _ in 0..max_scanned / STEP {
        let mut ids = candidates(conn, filter, IdOrder::OldestFirst, (from, to), STEP).await?;
        let last = ids.last().copied().filter(|_| count(ids.len()) == STEP);
        ids.dedup();
        counts.add(conn, filter, &ids).await?;
        let Some(last) = last else { return Ok(counts) };
        from = successor(last);
    }
    counts.is_truncated = true;
    Ok(counts)
}

impl MatchCounts {
    /// Adds those of the deliveries that match.
    async fn add(
        &mut self,
        conn: &mut AsyncPgConnection,
        filter: &Filter,
        ids: &[Uuid],
    ) -> Result<(), DatabaseError> {
        let before = "SELECT merchant, kind, count(*) AS count FROM (";
        let query = select(filter, ids, (before, ") AS matches GROUP BY merchant, kind"));
        for CountRow { merchant, kind, count } in query.load::<CountRow>(conn).await? {
            self.total += count;
            *self.by_merchant.entry(merchant).or_default() += count;
            *self.by_kind.entry(kind).or_default() += count;
        }
        Ok(())
    }
}
