//! Dry runs of replays.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use diesel_async::AsyncPgConnection;
use platform::database::DatabaseError;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::new_replay::MAX_COUNTED;
use crate::store::{self, DeliveryRow, Filter};

const MAX_MERCHANTS: usize = 100;
const SAMPLES: i64 = 10;

/// Result of a dry run.
#[derive(Serialize, ToSchema)]
pub(crate) struct DryRun {
    /// Number of deliveries that match. It includes superseded ones, which a replay without `force`
    /// skips.
    matches: i64,
    /// True if the count stopped after 100,000 messages or attempts, and more may match.
    truncated: bool,
    /// The 100 merchants with the most matches.
    by_merchant: Vec<MerchantMatches>,
    by_kind: Vec<KindMatches>,
    /// The ten deliveries that are replayed first.
    samples: Vec<MatchSample>,
    /// Duration of the replay at `per_second`.
    estimated_seconds: i64,
}

/// Matches of one merchant.
#[derive(Serialize, ToSchema)]
pub(crate) struct MerchantMatches {
    merchant: String,
    matches: i64,
}

/// Matches of one message kind.
#[derive(Serialize, ToSchema)]
pub(crate) struct KindMatches {
    kind: String,
    matches: i64,
}

/// A delivery that matches.
#[derive(Serialize, ToSchema)]
pub(crate) struct MatchSample {
    id: Uuid,
    merchant: String,
    kind: String,
    event: String,
    ordering_key: Option<String>,
    last_outcome: Option<String>,
    last_status: Option<i32>,
    created_at: DateTime<Utc>,
}

impl From<DeliveryRow> for MatchSample {
    fn from(row: DeliveryRow) -> Self {
        Self {
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
        samples: samples.into_iter().map(MatchSample::from).collect(),
        estimated_seconds: (matches + per_second - 1) / per_second,
    })
}
