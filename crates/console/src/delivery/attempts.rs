//! The attempts of a delivery as a timeline.

use chrono::{DateTime, Utc};
use pages::text::{Moment, latency};
use serde::Deserialize;

use crate::{Page, deliveries::outcome_words};

/// A header of a request or response.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) value: String,
}

/// An attempt as the services describe it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct AttemptView {
    #[serde(default)]
    pub(super) replay_number: u32,
    #[serde(default)]
    pub(super) number: u32,
    pub(super) started_at: DateTime<Utc>,
    #[serde(default)]
    pub(super) latency_ms: u32,
    pub(super) outcome: String,
    #[serde(default)]
    pub(super) status: Option<u16>,
    #[serde(default)]
    pub(super) detail: String,
    #[serde(default)]
    pub(super) response_body: String,
    #[serde(default)]
    pub(super) request_headers: Vec<Header>,
    #[serde(default)]
    pub(super) response_headers: Vec<Header>,
}

pub(super) struct Attempt {
    pub(super) view: AttemptView,
    pub(super) started: Moment,
    pub(super) duration: String,
}

impl Attempt {
    /// The attempts, newest first, because a reader looks for the last one.
    pub(super) fn list(page: &Page, views: Vec<AttemptView>) -> Vec<Self> {
        let attempt = |view: AttemptView| Self {
            started: page.moment(view.started_at),
            duration: latency(view.latency_ms),
            view,
        };
        views.into_iter().rev().map(attempt).collect()
    }

    pub(super) fn tone(&self) -> &'static str {
        if self.view.outcome == "delivered" { "good" } else { "bad" }
    }

    pub(super) fn title(&self) -> String {
        let result = match self.view.status {
            Some(status) => format!("response {status}"),
            None => outcome_words(&self.view.outcome).to_owned(),
        };
        match (self.view.replay_number, self.view.number) {
            (0, number) => format!("Attempt {number}: {result}"),
            (replay, number) => format!("Replay {replay}, attempt {number}: {result}"),
        }
    }

    /// The reason for the result. Empty if it only repeats the status, which the title has.
    pub(super) fn detail(&self) -> &str {
        let status = self.view.status.map(|status| format!("responded with {status}"));
        if status.as_ref() == Some(&self.view.detail) { "" } else { &self.view.detail }
    }

    /// The id of the element with the details, so that it stays open when the page refreshes.
    pub(super) fn id(&self) -> String {
        format!("attempt-{}", self.view.started_at.timestamp_micros())
    }
}
