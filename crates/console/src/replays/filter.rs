//! The filter of a replay, in words and as a link.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use uuid::Uuid;

use crate::{deliveries::outcome_words, listing::query_string};

/// A filter as the services return it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReplayFilter {
    pub(crate) delivery: Option<Uuid>,
    pub(crate) merchant: Option<String>,
    kind: Option<String>,
    state: Option<String>,
    status: Option<u16>,
    outcome: Option<String>,
    ordering_key: Option<String>,
    text: Option<String>,
    event: Option<String>,
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
}

impl ReplayFilter {
    /// The filter in words. A replay leaves out deliveries created after it started; the words do not
    /// repeat that.
    pub(crate) fn words(&self, started_at: DateTime<Utc>) -> String {
        if let Some(delivery) = self.delivery {
            return format!("delivery {delivery}");
        }
        let state = self.state.as_deref().unwrap_or("dead");
        let kind = self.kind.as_ref().map(|kind| format!(" {kind}")).unwrap_or_default();
        let merchant = self.merchant.as_deref().unwrap_or("all merchants");
        let mut words = format!("{state}{kind} messages of {merchant}");
        let time = |time: DateTime<Utc>| time.format("%-d %b %Y, %H:%M:%S UTC").to_string();
        let parts = [
            self.event.as_ref().map(|event| format!("event {event}")),
            self.status.map(|status| format!("last response {status}")),
            self.outcome.as_deref().map(|name| format!("last outcome {}", outcome_words(name))),
            self.ordering_key.as_ref().map(|key| format!("ordering key {key}")),
            self.text.as_ref().map(|text| format!("identifier {text}")),
            self.from.map(|from| format!("created from {}", time(from))),
            self.to.filter(|to| *to < started_at).map(|to| format!("created before {}", time(to))),
        ];
        for part in parts.into_iter().flatten() {
            words.push_str(", ");
            words.push_str(&part);
        }
        words
    }

    /// The query of the list that shows the deliveries. Their state has changed since.
    pub(crate) fn query(&self) -> String {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let time = |time: Option<DateTime<Utc>>| {
            time.map(|time| time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true))
                .unwrap_or_default()
        };
        let delivery = self.delivery.map(|id| id.to_string());
        let pairs = [
            ("merchant", text(&self.merchant)),
            ("kind", text(&self.kind)),
            ("event", text(&self.event)),
            ("ordering_key", text(&self.ordering_key)),
            ("text", delivery.unwrap_or_else(|| text(&self.text))),
            ("from", time(self.from)),
            ("to", time(self.to)),
        ];
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        query_string(&pairs)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn words(filter: Value) -> String {
        let filter: ReplayFilter = serde_json::from_value(filter).unwrap();
        filter.words("2026-11-16T09:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_filter_reads_as_words() {
        assert_eq!(words(json!({})), "dead messages of all merchants");
        let all = json!({
            "merchant": "acme", "kind": "rma", "state": "delivered", "status": 503,
            "outcome": "timed_out", "from": "2026-11-16T08:00:00Z", "to": "2026-11-16T08:30:00Z",
        });
        assert_eq!(
            words(all),
            "delivered rma messages of acme, last response 503, last outcome timed out, created from \
             16 Nov 2026, 08:00:00 UTC, created before 16 Nov 2026, 08:30:00 UTC"
        );
        let until_start = json!({ "merchant": "acme", "to": "2026-11-16T09:00:00Z" });
        assert_eq!(words(until_start), "dead messages of acme");
        assert_eq!(words(json!({ "delivery": Uuid::nil() })), format!("delivery {}", Uuid::nil()));
    }

    #[test]
    fn the_link_leaves_out_the_state_that_a_replay_changes() {
        let filter = json!({ "merchant": "acme", "state": "dead", "status": 503, "text": "R-1" });
        let filter: ReplayFilter = serde_json::from_value(filter).unwrap();
        assert_eq!(filter.query(), "merchant=acme&text=R-1");
    }
}
