//! The services: ready or not, why, and since when they run.

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use pages::api::{Caller, Readiness, Service};

use crate::{
    Page,
    markup::{badge, text, text_or_dash},
    table::Table,
};

pub(super) struct ServiceRow {
    pub(super) service: Service,
    pub(super) is_ready: bool,
    pub(super) state: &'static str,
    /// The parts that do not work.
    pub(super) reason: String,
    pub(super) started_at: Option<DateTime<Utc>>,
}

impl ServiceRow {
    pub(super) async fn load(api: &Caller) -> Vec<Self> {
        let calls = Service::ALL.map(async |service| (service, api.readiness(service).await));
        let rows = join_all(calls).await.into_iter();
        rows.map(|(service, readiness)| Self::new(service, readiness)).collect()
    }

    fn new(service: Service, readiness: Option<Readiness>) -> Self {
        let Some(readiness) = readiness else {
            let reason = "No response within two seconds".to_owned();
            return Self { service, is_ready: false, state: "away", reason, started_at: None };
        };
        Self {
            service,
            is_ready: readiness.ready,
            state: if readiness.ready { "ready" } else { "not ready" },
            reason: reason(&readiness),
            started_at: readiness.started_at,
        }
    }
}

pub(super) fn table(rows: &[ServiceRow], page: &Page) -> Table {
    Table::of("Services", rows)
        .head("Service", |it| text(it.service))
        .cell("State", |it| badge(if it.is_ready { "good" } else { "bad" }, it.state))
        .wrapped("Reason", |it| text_or_dash(Some(&it.reason).filter(|it| !it.is_empty())))
        .cell("Started", |it| page.time_or(it.started_at, "–"))
        .table()
}

/// The parts that do not work, each with its error.
fn reason(readiness: &Readiness) -> String {
    let broken = readiness.parts.iter().filter(|(_, state)| *state != "ok");
    broken.map(|(part, error)| format!("{part}: {error}")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_the_broken_parts() {
        let text =
            r#"{"ready": false, "parts": {"broker": "connection refused", "database": "ok"}}"#;
        let readiness: Readiness = serde_json::from_str(text).unwrap();
        assert_eq!(reason(&readiness), "broker: connection refused");
    }
}
