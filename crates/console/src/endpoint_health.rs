//! Endpoints with their health.

use std::cmp::Reverse;

use api::delivery::{EndpointView, WorstEndpoints};
use domain::endpoint_state::EndpointState;
use pages::{api::Service, text::latency};

use crate::{
    markup::{Markup, badge, text, text_or_dash},
    states::Shown as _,
    table::Columns,
};

/// The number of endpoints in the list of the worst.
const WORST: usize = 10;

pub(crate) fn success_rate(endpoint: &EndpointView) -> Option<String> {
    let recent = endpoint.recent.as_ref()?;
    Some(format!("{:.1} %", recent.success_rate * 100.0))
}

pub(crate) fn p95(endpoint: &EndpointView) -> Option<String> {
    Some(latency(endpoint.recent.as_ref()?.p95_ms))
}

/// The success rate is that of the newest two hours with attempts.
fn fails_often(endpoint: &EndpointView) -> bool {
    endpoint.recent.as_ref().is_some_and(|recent| recent.success_rate < 0.99)
}

/// How much an endpoint needs attention; 0 if it needs none.
fn severity(endpoint: &EndpointView) -> u8 {
    match endpoint.state {
        EndpointState::Failing => 2,
        EndpointState::Ok if fails_often(endpoint) => 1,
        EndpointState::Ok | EndpointState::NotTried | EndpointState::Paused => 0,
    }
}

/// The tone of the state. An endpoint that works and fails often needs attention, so it is not green.
pub(crate) fn tone(endpoint: &EndpointView) -> &'static str {
    match endpoint.state {
        EndpointState::Ok if fails_often(endpoint) => "warn",
        state => state.tone(),
    }
}

pub(crate) fn state_badge(endpoint: &EndpointView) -> Markup {
    badge(tone(endpoint), endpoint.state.words())
}

/// The reason why an endpoint needs attention. An endpoint that works again has no reason of its own.
pub(crate) fn attention(endpoint: &EndpointView) -> Option<String> {
    let rate = success_rate(endpoint).filter(|_| fails_often(endpoint));
    let few = || Some(format!("only {} of its latest attempts succeeded", rate?));
    endpoint.reason.clone().or_else(few)
}

impl Columns<'_, EndpointView> {
    /// The columns with the figures of an endpoint.
    pub(crate) fn health(self) -> Self {
        self.number("Successful", |it| text_or_dash(success_rate(it)))
            .number("p95", |it| text_or_dash(p95(it)))
            .number("Waiting", |it| text(it.waiting))
    }
}

/// The endpoints of all services that need attention most.
pub(crate) fn worst_of(services: Vec<(Service, WorstEndpoints)>) -> Vec<EndpointView> {
    worst(services.into_iter().flat_map(|(_, worst)| worst.endpoints).collect(), WORST)
}

fn worst(mut endpoints: Vec<EndpointView>, limit: usize) -> Vec<EndpointView> {
    endpoints.retain(|endpoint| severity(endpoint) > 0);
    endpoints.sort_by_key(|endpoint| Reverse((severity(endpoint), endpoint.waiting)));
    endpoints.truncate(limit);
    endpoints
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    fn endpoint(merchant: &str, state: &str, waiting: u64, success_rate: f64) -> EndpointView {
        fixtures::endpoint(&json!({
            "merchant": merchant, "state": state, "waiting": waiting,
            "recent": {
                "from": "2026-11-16T08:00:00Z", "attempts": 9, "success_rate": success_rate,
                "p95_ms": 210,
            },
        }))
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
            attention(&often).as_deref(),
            Some("only 10.9 % of its latest attempts succeeded")
        );
        let down =
            EndpointView { reason: Some("the endpoint responded with 503".to_owned()), ..often };
        assert_eq!(attention(&down).as_deref(), Some("the endpoint responded with 503"));
        assert_eq!(attention(&endpoint("fine", "ok", 0, 1.0)), None);
    }

    #[test]
    fn only_an_endpoint_that_delivered_a_message_is_green() {
        let tones = EndpointState::NAMES.iter().map(|name| tone(&endpoint("a", name, 0, 1.0)));
        assert_eq!(tones.collect::<Vec<_>>(), ["good", "info", "bad", "warn"]);
        assert_eq!(tone(&endpoint("often", "ok", 0, 0.9)), "warn");
    }

    #[test]
    fn health_reads_as_text() {
        let endpoint = endpoint("a", "ok", 0, 0.998);
        assert_eq!(success_rate(&endpoint).as_deref(), Some("99.8 %"));
        assert_eq!(p95(&endpoint).as_deref(), Some("210 ms"));
    }
}
