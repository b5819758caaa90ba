//! Endpoints with their health.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use domain::endpoint_state::EndpointState;
use pages::{api::Service, text::latency};
use serde::Deserialize;

use crate::{
    markup::{Markup, badge, text, text_or_dash},
    table::Columns,
};

/// An endpoint as the services describe it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) merchant: String,
    pub(crate) kind: String,
    pub(crate) state: EndpointState,
    #[serde(default)]
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) since: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(crate) waiting: u64,
    #[serde(default)]
    pub(crate) oldest_due_at: Option<DateTime<Utc>>,
    /// The number of messages that may be sent at the same time.
    #[serde(default)]
    pub(crate) window: Option<u64>,
    #[serde(default)]
    recent: Option<Recent>,
    #[serde(default)]
    pub(crate) last_success: Option<LastSuccess>,
    /// The last sample of a check that the endpoint accepted.
    #[serde(default)]
    pub(crate) last_accepted_sample: Option<LastSuccess>,
}

#[derive(Debug, Clone, Deserialize)]
struct Recent {
    success_rate: f64,
    p95_ms: u32,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LastSuccess {
    pub(crate) at: DateTime<Utc>,
}

/// The endpoints of a service that need attention, and its oldest due delivery.
#[derive(Debug, Deserialize)]
pub(crate) struct WorstEndpoints {
    endpoints: Vec<Endpoint>,
    pub(crate) oldest_due: Option<OldestDue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct OldestDue {
    pub(crate) merchant: String,
    pub(crate) kind: String,
    pub(crate) due_at: DateTime<Utc>,
}

/// The number of endpoints in the list of the worst.
const WORST: usize = 10;

/// The class of the badge of a state.
pub(crate) fn tone(state: EndpointState) -> &'static str {
    match state {
        EndpointState::Ok => "good",
        EndpointState::NotTried => "info",
        EndpointState::Paused => "warn",
        EndpointState::Failing => "bad",
    }
}

impl Endpoint {
    pub(crate) fn badge(&self) -> Markup {
        badge(tone(self.state), self.state.words())
    }

    pub(crate) fn success_rate(&self) -> Option<String> {
        let recent = self.recent.as_ref()?;
        Some(format!("{:.1} %", recent.success_rate * 100.0))
    }

    pub(crate) fn p95(&self) -> Option<String> {
        Some(latency(self.recent.as_ref()?.p95_ms))
    }

    /// The success rate is that of the newest two hours with attempts.
    fn fails_often(&self) -> bool {
        self.recent.as_ref().is_some_and(|recent| recent.success_rate < 0.99)
    }

    /// How much an endpoint needs attention; 0 if it needs none.
    fn severity(&self) -> u8 {
        match self.state {
            EndpointState::Failing => 2,
            EndpointState::Ok if self.fails_often() => 1,
            EndpointState::Ok | EndpointState::NotTried | EndpointState::Paused => 0,
        }
    }

    /// The reason why an endpoint needs attention. An endpoint that works again has no reason of its own.
    pub(crate) fn attention(&self) -> Option<String> {
        let rate = self.success_rate().filter(|_| self.fails_often());
        let few = || Some(format!("only {} of its latest attempts succeeded", rate?));
        self.reason.clone().or_else(few)
    }
}

impl Columns<'_, Endpoint> {
    /// The columns with the figures of an endpoint.
    pub(crate) fn health(self) -> Self {
        self.number("Successful", |it| text_or_dash(it.success_rate()))
            .number("p95", |it| text_or_dash(it.p95()))
            .number("Waiting", |it| text(it.waiting))
    }
}

/// The endpoints of all services that need attention most.
pub(crate) fn worst_of(services: Vec<(Service, WorstEndpoints)>) -> Vec<Endpoint> {
    worst(services.into_iter().flat_map(|(_, worst)| worst.endpoints).collect(), WORST)
}

fn worst(mut endpoints: Vec<Endpoint>, limit: usize) -> Vec<Endpoint> {
    endpoints.retain(|endpoint| endpoint.severity() > 0);
    endpoints.sort_by_key(|endpoint| Reverse((endpoint.severity(), endpoint.waiting)));
    endpoints.truncate(limit);
    endpoints
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn endpoint(merchant: &str, state: &str, waiting: u64, success_rate: f64) -> Endpoint {
        serde_json::from_value(json!({
            "merchant": merchant, "kind": "rma", "state": state, "waiting": waiting,
            "recent": { "success_rate": success_rate, "p95_ms": 210 },
        }))
        .unwrap()
    }

    #[test]
    fn the_worst_endpoints_come_first() {
        let endpoints = vec![
            endpoint("fine", "ok", 0, 1.0),
            endpoint("paused", "paused", 5, 1.0),
            endpoint("slow", "ok", 0, 0.9),
            endpoint("down", "failing", 3, 0.0),
            endpoint("worse", "failing", 9, 0.0),
        ];
        let names: Vec<_> = worst(endpoints, 3).into_iter().map(|one| one.merchant).collect();
        assert_eq!(names, ["worse", "down", "slow"]);
    }

    #[test]
    fn an_endpoint_that_needs_attention_has_a_reason() {
        let often = endpoint("often", "ok", 0, 0.109);
        assert_eq!(
            often.attention().as_deref(),
            Some("only 10.9 % of its latest attempts succeeded")
        );
        let down = Endpoint { reason: Some("the endpoint responded with 503".to_owned()), ..often };
        assert_eq!(down.attention().as_deref(), Some("the endpoint responded with 503"));
        assert_eq!(endpoint("fine", "ok", 0, 1.0).attention(), None);
    }

    #[test]
    fn only_an_endpoint_that_delivered_a_message_is_green() {
        let tones = EndpointState::NAMES.iter().map(|name| tone(endpoint("a", name, 0, 0.0).state));
        assert_eq!(tones.collect::<Vec<_>>(), ["good", "info", "bad", "warn"]);
    }

    #[test]
    fn health_reads_as_text() {
        let endpoint = endpoint("a", "ok", 0, 0.998);
        assert_eq!(endpoint.success_rate().as_deref(), Some("99.8 %"));
        assert_eq!(endpoint.p95().as_deref(), Some("210 ms"));
    }
}
