//! The attempts of a delivery as a timeline.

use api::delivery::AttemptView;
use pages::text::{Moment, latency};

use crate::{Page, deliveries::outcome_words};

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
