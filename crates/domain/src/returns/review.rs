//! The review of a return by its merchant before the return starts.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Deadline, DeadlineKind};
use crate::merchant::{ReviewDecision, ReviewTerms, Settings};

/// The review of a return that a rule of the merchant asked for. The rule may have changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnReview {
    /// The rule that asked for the review.
    #[schema(example = "frequent-returners")]
    pub rule: String,
    pub within_days: u16,
    /// The time at which `then` decides if nobody has decided.
    pub due_at: DateTime<Utc>,
    /// The decision if nobody decides in time.
    pub then: ReviewDecision,
    /// Absent while the return waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub decided: Option<DecidedReview>,
}

/// The decision about a return that waited for review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecidedReview {
    pub decision: ReviewDecision,
    pub at: DateTime<Utc>,
    /// The person or the client; absent if the rule decided, because nobody had decided in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub by: Option<String>,
    /// For a declined return, the portal shows the note to the shopper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub note: Option<String>,
}

impl ReturnReview {
    /// The review of a return that was requested at a time. It ends with a day of the merchant.
    pub fn new(
        terms: ReviewTerms,
        rule: impl Into<String>,
        requested_at: DateTime<Utc>,
        settings: &Settings,
    ) -> Self {
        let ReviewTerms { within_days, then } = terms;
        let kind = DeadlineKind::Review;
        let Deadline { due_at, .. } = Deadline::new(kind, requested_at, within_days, settings);
        Self { rule: rule.into(), within_days, due_at, then, decided: None }
    }

    /// The decision that the rule makes when nobody has decided in time.
    pub fn by_rule(&self, now: DateTime<Utc>) -> DecidedReview {
        DecidedReview { decision: self.then, at: now, by: None, note: None }
    }
}
