//! A delivery as the services describe it.

use chrono::{DateTime, Utc};
use pages::text::count;
use serde::Deserialize;
use uuid::Uuid;

use super::outcome_words;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) id: Uuid,
    pub(crate) merchant: String,
    pub(crate) kind: String,
    pub(crate) event: String,
    #[serde(default)]
    pub(crate) ordering_key: Option<String>,
    #[serde(default)]
    pub(crate) sequence: i64,
    pub(crate) state: String,
    pub(crate) created_at: DateTime<Utc>,
    #[serde(default)]
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    /// Attempts since creation or the last replay. None once the delivery is settled.
    #[serde(default)]
    pub(crate) attempt_count: Option<u32>,
    #[serde(default)]
    pub(crate) last_outcome: Option<String>,
    #[serde(default)]
    pub(crate) last_status: Option<u16>,
    #[serde(default)]
    pub(crate) waiting: Option<Waiting>,
}

/// The reason why a pending delivery waits.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) reason: String,
    #[serde(default)]
    pub(crate) detail: String,
}

impl Delivery {
    pub(crate) fn is_pending(&self) -> bool {
        self.state == "pending"
    }

    pub(crate) fn tone(&self) -> &'static str {
        match self.state.as_str() {
            "delivered" => "good",
            "dead" => "bad",
            _ if self.attempt_count.unwrap_or(0) > 0 => "warn",
            _ => "info",
        }
    }

    /// The last response in a few words.
    pub(crate) fn last_response(&self) -> String {
        match (self.last_status, &self.last_outcome) {
            (Some(status), _) => status.to_string(),
            (None, Some(outcome)) => outcome_words(outcome).to_owned(),
            (None, None) => "not attempted yet".to_owned(),
        }
    }

    /// The number of attempts, if there is one.
    pub(crate) fn attempts(&self) -> Option<String> {
        let number = self.attempt_count.filter(|number| *number > 0)?;
        Some(format!("after {}", count(number.into(), "attempt", "attempts")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attempts_are_counted_once_there_is_one() {
        let attempts = |count: Option<u32>| {
            let delivery: Delivery = serde_json::from_value(json!({
                "id": Uuid::nil(), "merchant": "acme", "kind": "rma", "event": "rma.created",
                "state": "pending", "created_at": "2026-11-16T08:00:00Z", "attempt_count": count,
            }))
            .unwrap();
            delivery.attempts()
        };
        assert_eq!(attempts(Some(3)).as_deref(), Some("after 3 attempts"));
        assert_eq!(attempts(Some(1)).as_deref(), Some("after 1 attempt"));
        assert_eq!((attempts(Some(0)), attempts(None)), (None, None));
    }
}
