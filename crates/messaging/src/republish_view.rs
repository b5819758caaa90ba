//! A request to publish events again, as operators read it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::republishes::Republish;

/// A request to publish events again, and its progress.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RepublishView {
    id: Uuid,
    #[schema(value_type = String, example = "order-intake")]
    service: &'static str,
    /// `running`, `stopped` or `finished`.
    #[schema(example = "running")]
    state: String,
    /// E-mail address of the person, or id of the client, that requested it.
    requested_by: String,
    /// The requested time, or the time from which events were kept if that was later.
    since: DateTime<Utc>,
    until: DateTime<Utc>,
    /// Empty for all types that services consume.
    types: Vec<String>,
    /// Events to publish, counted up to 1,000,000.
    total: i64,
    /// Events that the broker has again.
    done: i64,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

impl RepublishView {
    pub(crate) fn new(service: &'static str, republish: Republish) -> Self {
        Self {
            id: republish.id,
            service,
            state: republish.state,
            requested_by: republish.requested_by,
            since: republish.since,
            until: republish.until,
            types: republish.types,
            total: republish.total,
            done: republish.done,
            created_at: republish.created_at,
            finished_at: republish.finished_at,
        }
    }
}

/// A page of requests, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RepublishPage {
    pub(crate) republishes: Vec<RepublishView>,
    /// Pass as `after` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}
