//! Dry runs of replays.

use std::cmp::Reverse;

use api::delivery::{DryRun, Filter, KindMatches, MatchSample, MerchantMatches};
use diesel_async::AsyncPgConnection;
use platform::database::DatabaseError;
use uuid::Uuid;

use super::new_replay::MAX_COUNTED;
use crate::store::{self, DeliveryRow};

const MAX_MERCHANTS: usize = 100;
const SAMPLES: i64 = 10;

fn sample(row: DeliveryRow) -> MatchSample {
    MatchSample {
        id: row.id,
        merchant: row.merchant,
        kind: row.kind,
        event: row.event,
        ordering_key: row.ordering_key,
        last_outcome: row.outcome,
        last_status: row.status,
        created_at: row.created_at,
    }
}

pub(super) async fn dry_run(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    per_second: i32,
) -> Result<DryRun, DatabaseError> {
    let samples = store::oldest_first(conn, filter, Uuid::nil(), SAMPLES).await?.rows;
    let counts = store::match_counts(conn, filter, MAX_COUNTED).await?;
    let matches = counts.total;
    let by_merchant = counts.by_merchant.into_iter();
    let mut by_merchant: Vec<_> =
        by_merchant.map(|(merchant, matches)| MerchantMatches { merchant, matches }).collect();
    by_merchant.sort_by_key(|it| Reverse(it.matches));
    by_merchant.truncate(MAX_MERCHANTS);
    let by_kind = counts.by_kind.into_iter();
    let mut by_kind: Vec<_> =
        by_kind.map(|(kind, matches)| KindMatches { kind, matches }).collect();
    by_kind.sort_by_key(|it| Reverse(it.matches));
    let per_second = i64::from(per_second);
    Ok(DryRun {
        matches,
        truncated: counts.is_truncated,
        by_merchant,
        by_kind,
        samples: samples.into_iter().map(sample).collect(),
        estimated_seconds: (matches + per_second - 1) / per_second,
    })
}
