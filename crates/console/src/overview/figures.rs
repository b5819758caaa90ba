//! The most important numbers of the installation.

use api::delivery::WorstEndpoints;
use chrono::{DateTime, TimeDelta, Utc};
use pages::{
    api::Service,
    text::{Span, count, grouped},
};

use super::{backlog::Backlog, services::ServiceRow, traffic::Traffic};
use crate::{Page, parts::Loaded};

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
    endpoints: &Loaded<(Service, WorstEndpoints)>,
) -> Vec<Figure> {
    let oldest_due = oldest_due(|at| page.age(at), endpoints);
    vec![ready(services), dead(backlogs), oldest_due, outbox(backlogs)]
}

/// The services that the console calls. It has no address of the portal, so it cannot call it.
fn ready(services: &[ServiceRow]) -> Figure {
    let ready = services.iter().filter(|service| service.is_ready).count();
    Figure {
        title: "Services ready",
        value: format!("{ready} of {}", services.len()),
        note: "without console and portal".to_owned(),
        tone: if ready == services.len() { "" } else { "bad" },
        url: None,
    }
}

/// A value of several services. It is at least this if some do not respond, and none only if all do.
fn of_known(value: Option<String>, is_complete: bool) -> String {
    match (value, is_complete) {
        (Some(value), true) => value,
        (Some(value), false) => format!("at least {value}"),
        (None, true) => "none".to_owned(),
        (None, false) => "not known".to_owned(),
    }
}

fn dead(backlogs: &Loaded<(Service, Backlog)>) -> Figure {
    let all = || backlogs.entries.iter().map(|(_, backlog)| backlog);
    let queues = all().flat_map(|backlog| &backlog.queues);
    let dead: u64 =
        queues.filter(|queue| queue.is_of_deliveries()).map(|queue| queue.dead_letters).sum();
    let is_complete = backlogs.missing.is_empty() && all().all(Backlog::has_broker);
    Figure {
        title: "Dead deliveries",
        value: of_known((dead > 0).then(|| grouped(dead)), is_complete),
        note: if is_complete { "" } else { "not all queues are known" }.to_owned(),
        tone: if dead == 0 { "" } else { "bad" },
        url: (dead > 0).then_some("/deliveries?state=dead"),
    }
}

fn oldest_due(
    age: impl Fn(DateTime<Utc>) -> TimeDelta,
    endpoints: &Loaded<(Service, WorstEndpoints)>,
) -> Figure {
    let due = endpoints.entries.iter().filter_map(|(_, worst)| worst.oldest_due.as_ref());
    let oldest = due.min_by_key(|due| due.due_at);
    let age = oldest.map(|due| age(due.due_at)).unwrap_or_default();
    let value = oldest.map(|_| Span(age).to_string());
    Figure {
        title: "Oldest due delivery",
        value: of_known(value, endpoints.missing.is_empty()),
        note: oldest.map(|due| format!("{} to {}", due.kind, due.merchant)).unwrap_or_default(),
        tone: if age > LATE { "warn" } else { "" },
        url: oldest.map(|_| "/deliveries?state=pending"),
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
        value: of_known(age.map(|age| Span(age).to_string()), backlogs.missing.is_empty()),
        note: match unpublished {
            0 => String::new(),
            number => count(number, "event waits", "events wait"),
        },
        tone: if oldest.is_some_and(|age| age > OLD_EVENT_SECONDS) { "warn" } else { "" },
        url: None,
    }
}

/// The part of the attempts that succeeded, of the services that respond.
pub(super) fn success(traffic: &Traffic, missing: &[Service]) -> Figure {
    let attempts = count(traffic.attempts(), "attempt", "attempts");
    let (none, note) = if missing.is_empty() {
        ("–", format!("of {attempts}"))
    } else {
        ("not known", format!("of the {attempts} that are known"))
    };
    Figure {
        title: "Successful attempts, 24 hours",
        value: traffic.success_rate().unwrap_or_else(|| none.to_owned()),
        note,
        tone: "",
        url: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn backlogs(text: &str, missing: Vec<Service>) -> Loaded<(Service, Backlog)> {
        let entries = vec![(Service::RmaEngine, serde_json::from_str(text).unwrap())];
        Loaded { entries, missing }
    }

    #[test]
    fn the_number_of_services_says_which_are_left_out() {
        let row = |is_ready| ServiceRow {
            service: Service::Auth,
            is_ready,
            state: "",
            reason: String::new(),
            started_at: None,
        };
        let figure = ready(&[row(true), row(false)]);
        assert_eq!((figure.value.as_str(), figure.tone), ("1 of 2", "bad"));
        assert_eq!(figure.note, "without console and portal");
    }

    #[test]
    fn dead_deliveries_are_those_in_queues_of_messages() {
        let text = r#"{"broker": "available", "outbox": {"unpublished": 2, "oldest_age_seconds": 90},
            "queues": [{"queue": "notify.rma", "dead_letters": 12},
                       {"queue": "rma-engine.order.stored.v1", "dead_letters": 3}]}"#;
        let known = dead(&backlogs(text, Vec::new()));
        assert_eq!((known.value.as_str(), known.note.as_str(), known.tone), ("12", "", "bad"));
        let partial = dead(&backlogs(text, vec![Service::Exchange]));
        assert_eq!(partial.value, "at least 12");
        let waiting = outbox(&backlogs(text, Vec::new()));
        assert_eq!(
            (waiting.value.as_str(), waiting.note.as_str()),
            ("1 min 30 s", "2 events wait")
        );
        assert_eq!(waiting.tone, "warn");
    }

    #[test]
    fn a_number_of_a_missing_service_is_not_known() {
        let quiet = r#"{"broker": "available", "outbox": {"unpublished": 0}, "queues": []}"#;
        let missing = || vec![Service::Exchange];
        for (missing, expected) in [(Vec::new(), "none"), (missing(), "not known")] {
            let backlogs = backlogs(quiet, missing.clone());
            assert_eq!(dead(&backlogs).value, expected);
            assert_eq!(outbox(&backlogs).value, expected);
            let endpoints = Loaded { entries: Vec::new(), missing };
            assert_eq!(oldest_due(|_| TimeDelta::zero(), &endpoints).value, expected);
        }
        let silent = r#"{"broker": "unavailable"}"#;
        assert_eq!(dead(&backlogs(silent, Vec::new())).value, "not known");
        let none = Traffic::new(std::iter::empty());
        assert_eq!(success(&none, &missing()).value, "not known");
        assert_eq!(success(&none, &[]).value, "–");
    }

    #[test]
    fn the_oldest_due_delivery_of_all_services_counts() {
        let worst = |minute: u32| -> WorstEndpoints {
            let due = format!("2026-11-16T08:{minute:02}:00Z");
            serde_json::from_value(json!({ "endpoints": [],
                "oldest_due": { "merchant": format!("m{minute}"), "kind": "rma", "due_at": due } }))
            .unwrap()
        };
        let entries = vec![(Service::RmaEngine, worst(20)), (Service::Exchange, worst(10))];
        let endpoints = Loaded { entries, missing: vec![Service::WarehouseNotifier] };
        let now: DateTime<Utc> = "2026-11-16T08:25:00Z".parse().unwrap();
        let figure = oldest_due(|at| now - at, &endpoints);
        assert_eq!((figure.value.as_str(), figure.tone), ("at least 15 min", "warn"));
        assert_eq!(figure.note, "rma to m10");
    }
}
