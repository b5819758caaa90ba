//! The timeline of a return as rma-engine shows it to its shopper.

use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, Service},
    path,
};
use serde::Deserialize;

use crate::visit::Visit;

/// The longest page of a timeline.
const PAGE: &str = "200";
/// Timelines with more pages are cut. A carrier that reports thousands of times is no reason to wait.
const MAX_PAGES: usize = 10;

/// An entry of the shopper's timeline.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Entry {
    pub(crate) at: DateTime<Utc>,
    pub(crate) step: EntryStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EntryStep {
    Requested,
    DroppedOff,
    InTransit,
    Arrived,
    Received,
    Refunded,
    ExchangePlaced,
    GiftCardIssued,
    Canceled,
    Approved,
    Declined,
    Expired,
    /// A step that is not part of the tracking.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Timeline {
    #[serde(default)]
    entries: Vec<Entry>,
    next: Option<String>,
}

/// The whole timeline of a return, oldest first.
pub(crate) async fn load_timeline(visit: &Visit, rma: &str) -> Result<Vec<Entry>, ApiError> {
    let path = path!("v1", "returns", rma, "timeline");
    let mut entries = Vec::new();
    let mut after = String::new();
    for _ in 0..MAX_PAGES {
        let query = [("limit", PAGE), ("after", after.as_str())];
        let page: Timeline =
            visit.api.get_for(Service::RmaEngine, visit.merchant(), &path, &query).await?;
        entries.extend(page.entries);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    Ok(entries)
}
