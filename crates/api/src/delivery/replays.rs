//! Replays and their dry runs.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;
use uuid::Uuid;

use super::State;

/// State of a replay.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    ToSchema,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ReplayState {
    Running,
    Paused,
    /// Ended by a person or client before all deliveries were replayed.
    Stopped,
    Finished,
}

impl ReplayState {
    /// The name in the API and in the database.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Filter for deliveries. All given fields must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Id of a single delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 63)]
    pub merchant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// HTTP status code of the last response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 100, maximum = 999)]
    pub status: Option<u16>,
    /// Outcome of the last attempt, for example `timed_out`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1000)]
    pub ordering_key: Option<String>,
    /// Id of a delivery, an ordering key, or the identifier in one: of a return, order or ASN.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1000)]
    pub text: Option<String>,
    /// For example `rma.created`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1000)]
    pub event: Option<String>,
    /// Created at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    /// Created before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<DateTime<Utc>>,
}

/// A replay and its progress.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReplayView {
    pub id: Uuid,
    /// E-mail address of the person, or id of the client, that requested the replay.
    pub requested_by: String,
    pub state: ReplayState,
    pub filter: Filter,
    pub force: bool,
    pub per_second: i32,
    /// Deliveries that matched when the replay was started, counted up to 100,000.
    pub matched: i64,
    /// Deliveries that are pending again.
    pub replayed: i64,
    /// Deliveries that were superseded or pending already.
    pub skipped: i64,
    /// Deliveries that could not be replayed because of an error. The log of the service has the cause.
    pub failed: i64,
    /// Time at which the replay was started.
    pub created_at: DateTime<Utc>,
    /// Time at which the replay was finished or stopped.
    pub finished_at: Option<DateTime<Utc>>,
    /// E-mail address of the person, or id of the client, that last paused, resumed or stopped the replay.
    pub changed_by: Option<String>,
}

/// A page of replays, newest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReplayPage {
    pub replays: Vec<ReplayView>,
    /// Pass as `after` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Result of a dry run.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DryRun {
    /// Number of deliveries that match. It includes superseded ones, which a replay without `force`
    /// skips.
    pub matches: i64,
    /// True if the count stopped after 100,000 messages or attempts, and more may match.
    pub truncated: bool,
    /// The 100 merchants with the most matches.
    pub by_merchant: Vec<MerchantMatches>,
    pub by_kind: Vec<KindMatches>,
    /// The ten deliveries that are replayed first.
    pub samples: Vec<MatchSample>,
    /// Duration of the replay at `per_second`.
    pub estimated_seconds: i64,
}

/// Matches of one merchant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MerchantMatches {
    pub merchant: String,
    pub matches: i64,
}

/// Matches of one message kind.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct KindMatches {
    pub kind: String,
    pub matches: i64,
}

/// A delivery that matches.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MatchSample {
    pub id: Uuid,
    pub merchant: String,
    pub kind: String,
    pub event: String,
    pub ordering_key: Option<String>,
    pub last_outcome: Option<String>,
    pub last_status: Option<i32>,
    pub created_at: DateTime<Utc>,
}
