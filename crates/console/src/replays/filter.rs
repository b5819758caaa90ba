//! The filter of a replay, in words and as a link.

use api::delivery::{Filter, State};
use chrono::{DateTime, Utc};

use crate::{deliveries::outcome_words, record_list::query_string};

/// The filter in words. A replay leaves out deliveries created after it started; the words do not
/// repeat that.
pub(super) fn words(filter: &Filter, started_at: DateTime<Utc>) -> String {
    if let Some(delivery) = filter.delivery {
        return format!("delivery {delivery}");
    }
    let state = filter.state.unwrap_or(State::Dead);
    let kind = filter.kind.as_ref().map(|kind| format!(" {kind}")).unwrap_or_default();
    let merchant = filter.merchant.as_deref().unwrap_or("all merchants");
    let mut words = format!("{state}{kind} messages of {merchant}");
    let time = |time: DateTime<Utc>| time.format("%-d %b %Y, %H:%M:%S UTC").to_string();
    let parts = [
        filter.event.as_ref().map(|event| format!("event {event}")),
        filter.status.map(|status| format!("last response {status}")),
        filter.outcome.as_deref().map(|name| format!("last outcome {}", outcome_words(name))),
        filter.ordering_key.as_ref().map(|key| format!("ordering key {key}")),
        filter.text.as_ref().map(|text| format!("identifier {text}")),
        filter.from.map(|from| format!("created from {}", time(from))),
        filter.to.filter(|to| *to < started_at).map(|to| format!("created before {}", time(to))),
    ];
    for part in parts.into_iter().flatten() {
        words.push_str(", ");
        words.push_str(&part);
    }
    words
}

/// The query of the list that shows the deliveries. Their state has changed since.
pub(super) fn query(filter: &Filter) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let time = |time: Option<DateTime<Utc>>| {
        time.map(|time| time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true))
            .unwrap_or_default()
    };
    let delivery = filter.delivery.map(|id| id.to_string());
    let pairs = [
        ("merchant", text(&filter.merchant)),
        ("kind", text(&filter.kind)),
        ("event", text(&filter.event)),
        ("ordering_key", text(&filter.ordering_key)),
        ("text", delivery.unwrap_or_else(|| text(&filter.text))),
        ("from", time(filter.from)),
        ("to", time(filter.to)),
    ];
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
    query_string(&pairs)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    fn words(filter: Value) -> String {
        let filter: Filter = serde_json::from_value(filter).unwrap();
        super::words(&filter, "2026-11-16T09:00:00Z".parse().unwrap())
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
        let filter: Filter = serde_json::from_value(filter).unwrap();
        assert_eq!(query(&filter), "merchant=acme&text=R-1");
    }
}
