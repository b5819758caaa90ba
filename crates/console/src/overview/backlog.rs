//! The outbox and the queues of each service.

use pages::api::Service;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct Backlog {
    #[serde(default)]
    pub(super) outbox: Outbox,
    /// `available` or `unavailable`.
    #[serde(default)]
    broker: String,
    #[serde(default)]
    pub(super) queues: Vec<Queue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Outbox {
    pub(super) unpublished: u64,
    pub(super) oldest_age_seconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Queue {
    pub(super) queue: String,
    #[serde(default)]
    pub(super) depth: u64,
    #[serde(default)]
    pub(super) consumers: u64,
    #[serde(default)]
    pub(super) dead_letters: u64,
}

impl Backlog {
    pub(super) fn has_broker(&self) -> bool {
        self.broker != "unavailable"
    }
}

impl Queue {
    /// Whether the queue holds messages to merchants. The other queues hold events between services.
    pub(super) fn is_of_deliveries(&self) -> bool {
        self.queue.starts_with("notify.") || self.queue.contains(".notify.")
    }
}

/// A queue, or a service whose broker does not respond.
pub(super) struct QueueRow {
    pub(super) service: Service,
    pub(super) queue: Option<Queue>,
}

impl QueueRow {
    /// Whether messages wait or were given up, or nobody receives them, or the queue is not known.
    pub(super) fn needs_attention(&self) -> bool {
        self.queue
            .as_ref()
            .is_none_or(|queue| queue.depth > 0 || queue.dead_letters > 0 || queue.consumers == 0)
    }

    /// The queues with the most work first: dead letters, then waiting messages.
    pub(super) fn list(backlogs: Vec<(Service, Backlog)>) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for (service, backlog) in backlogs {
            if !backlog.has_broker() {
                rows.push(Self { service, queue: None });
            }
            let queues = backlog.queues.into_iter();
            rows.extend(queues.map(|queue| Self { service, queue: Some(queue) }));
        }
        let work = |row: &Self| {
            row.queue.as_ref().map_or((u64::MAX, 0), |queue| (queue.dead_letters, queue.depth))
        };
        rows.sort_by_key(|row| std::cmp::Reverse(work(row)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(text: &str) -> Backlog {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn queues_with_dead_letters_come_first() {
        let rma = backlog(
            r#"{"broker": "available", "queues": [
                {"queue": "notify.rma", "depth": 9, "consumers": 1, "dead_letters": 0},
                {"queue": "rma-engine.order.stored.v1", "depth": 0, "consumers": 1, "dead_letters": 2}]}"#,
        );
        let away = backlog(r#"{"broker": "unavailable", "queues": []}"#);
        let rows = QueueRow::list(vec![(Service::RmaEngine, rma), (Service::Exchange, away)]);
        let names: Vec<_> =
            rows.iter().map(|row| row.queue.as_ref().map(|queue| queue.queue.as_str())).collect();
        assert_eq!(names, [None, Some("rma-engine.order.stored.v1"), Some("notify.rma")]);
        assert!(rows.iter().all(QueueRow::needs_attention));
        let idle = backlog(r#"{"queues": [{"queue": "notify.rma", "depth": 0, "consumers": 1}]}"#);
        let rows = QueueRow::list(vec![(Service::RmaEngine, idle)]);
        assert!(!rows.iter().any(QueueRow::needs_attention));
    }

    #[test]
    fn only_queues_of_messages_hold_deliveries() {
        let queue = |name: &str| backlog(&format!(r#"{{"queues": [{{"queue": "{name}"}}]}}"#));
        for (name, expected) in [
            ("notify.rma", true),
            ("test-1.notify.rma", true),
            ("rma-engine.order.stored.v1", false),
        ] {
            assert_eq!(queue(name).queues[0].is_of_deliveries(), expected, "{name}");
        }
    }
}
