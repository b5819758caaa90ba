//! The most important numbers of the installation.

use chrono::TimeDelta;
use pages::{
    api::Service,
    text::{Span, count, grouped},
};

use super::{backlog::Backlog, services::ServiceRow, traffic::Traffic};
use crate::{endpoint_health::Endpoint, page::Page, parts::Loaded};

/// Deliveries that are due are sent within moments, so a longer wait needs attention.
const LATE: TimeDelta = TimeDelta::minutes(1);
const OLD_EVENT_SECONDS: u64 = 30;

/// A number with its meaning.
pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) value: String,
    pub(super) note: String,
    /// The class of the value.
    pub(super) tone: &'static str,
    pub(super) url: Option<&'static str>,
}

pub(super) fn figures(
    page: &Page,
    services: &[ServiceRow],
    backlogs: &Loaded<(Service, Backlog)>,
    endpoints: &Loaded<Endpoint>,
    traffic: &Traffic,
) -> Vec<Figure> {
    let ready = services.iter().filter(|service| service.is_ready).count();
    let ready = Figure {
        title: "Services ready",
        value: format!("{ready} of {}", services.len()),
        note: String::new(),
        tone: if ready == services.len() { "" } else { "bad" },
        url: None,
    };
    vec![ready, dead(backlogs), oldest_due(page, endpoints), outbox(backlogs), success(traffic)]
}

fn dead(backlogs: &Loaded<(Service, Backlog)>) -> Figure {
    let all = || backlogs.entries.iter().map(|(_, backlog)| backlog);
    let queues = all().flat_map(|backlog| &backlog.queues);
    let dead: u64 =
        queues.filter(|queue| queue.is_of_deliveries()).map(|queue| queue.dead_letters).sum();
    let is_complete = backlogs.missing.is_empty() && all().all(Backlog::has_broker);
    Figure {
        title: "Dead deliveries",
        value: grouped(dead),
        note: if is_complete { "" } else { "at least; not all queues are known" }.to_owned(),
        tone: if dead == 0 { "" } else { "bad" },
        url: Some("/deliveries?state=dead"),
    }
}

fn oldest_due(page: &Page, endpoints: &Loaded<Endpoint>) -> Figure {
    let due = || endpoints.entries.iter().filter_map(|one| Some((one.oldest_due_at?, one)));
    let oldest = due().min_by_key(|(at, _)| *at);
    let age = oldest.map(|(at, _)| page.age(at)).unwrap_or_default();
    Figure {
        title: "Oldest due delivery",
        value: if oldest.is_some() { Span(age).to_string() } else { "none".to_owned() },
        note: oldest
            .map(|(_, one)| format!("{} to {}", one.kind, one.merchant))
            .unwrap_or_default(),
        tone: if age > LATE { "warn" } else { "" },
        url: Some("/deliveries?state=pending"),
    }
}

fn outbox(backlogs: &Loaded<(Service, Backlog)>) -> Figure {
    let outboxes = || backlogs.entries.iter().map(|(_, backlog)| &backlog.outbox);
    let oldest = outboxes().filter_map(|outbox| outbox.oldest_age_seconds).max();
    let unpublished: u64 = outboxes().map(|outbox| outbox.unpublished).sum();
    let age =
        oldest.map(|seconds| TimeDelta::seconds(seconds.try_into().unwrap_or(i64::MAX / 1000)));
    Figure {
        title: "Oldest event in an outbox",
        value: age.map_or_else(|| "none".to_owned(), |age| Span(age).to_string()),
        note: match unpublished {
            0 => String::new(),
            number => count(number, "event waits", "events wait"),
        },
        tone: if oldest.is_some_and(|age| age > OLD_EVENT_SECONDS) { "warn" } else { "" },
        url: None,
    }
}

fn success(traffic: &Traffic) -> Figure {
    Figure {
        title: "Successful attempts, 24 hours",
        value: traffic.success_rate().unwrap_or_else(|| "–".to_owned()),
        note: format!("of {}", count(traffic.attempts(), "attempt", "attempts")),
        tone: "",
        url: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlogs(text: &str, missing: Vec<Service>) -> Loaded<(Service, Backlog)> {
        let entries = vec![(Service::RmaEngine, serde_json::from_str(text).unwrap())];
        Loaded { entries, missing }
    }

    #[test]
    fn dead_deliveries_are_those_in_queues_of_messages() {
        let text = r#"{"broker": "available", "outbox": {"unpublished": 2, "oldest_age_seconds": 90},
            "queues": [{"queue": "notify.rma", "dead_letters": 12},
                       {"queue": "rma-engine.order.stored.v1", "dead_letters": 3}]}"#;
        let known = dead(&backlogs(text, Vec::new()));
        assert_eq!((known.value.as_str(), known.note.as_str(), known.tone), ("12", "", "bad"));
        let partial = dead(&backlogs(text, vec![Service::Exchange]));
        assert!(partial.note.starts_with("at least"), "{}", partial.note);
        let waiting = outbox(&backlogs(text, Vec::new()));
        assert_eq!(
            (waiting.value.as_str(), waiting.note.as_str()),
            ("1 min 30 s", "2 events wait")
        );
        assert_eq!(waiting.tone, "warn");
    }
}
