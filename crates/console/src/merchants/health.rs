//! The health of the merchants in a list: which endpoints fail, are paused or are disabled.

use std::collections::BTreeMap;

use futures_util::future::join;
use pages::{api::Service, text::count};
use serde::Deserialize;

use crate::{
    error::PageError,
    merchant::Merchant,
    parts::{self, Loaded},
    person::SignedIn,
};

#[derive(Deserialize)]
struct EndpointPage {
    endpoints: Vec<Endpoint>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Endpoint {
    merchant: String,
}

/// The number of bad endpoints of a merchant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Problems {
    failing: u64,
    disabled: u64,
}

/// The bad endpoints of all merchants.
#[derive(Debug, Default)]
pub(super) struct HealthOfAll {
    problems: BTreeMap<String, Problems>,
    /// If a list was too long for one page, the health of later merchants is not known.
    known_until: Option<String>,
    /// The services that did not respond.
    pub(super) unavailable: Vec<Service>,
}

impl HealthOfAll {
    /// Asks the delivering services for bad endpoints only, which are few.
    pub(super) async fn load(signed_in: &SignedIn) -> Result<Self, PageError> {
        let load = async |state| {
            let query = [("state", state), ("limit", "200")];
            parts::each(&signed_in.api, &Service::DELIVERING, "v1/endpoints", &query).await
        };
        let (failing, disabled) = join(load("failing"), load("disabled")).await;
        let mut health = Self::default();
        health.add(failing?, |problems| problems.failing += 1);
        health.add(disabled?, |problems| problems.disabled += 1);
        Ok(health)
    }

    fn add(&mut self, loaded: Loaded<(Service, EndpointPage)>, count: impl Fn(&mut Problems)) {
        self.unavailable.extend(loaded.missing);
        self.unavailable.sort();
        self.unavailable.dedup();
        for (_, page) in loaded.entries {
            if let (Some(_), Some(last)) = (page.next, page.endpoints.last()) {
                let known = self.known_until.get_or_insert_with(|| last.merchant.clone());
                *known = known.clone().min(last.merchant.clone());
            }
            for endpoint in page.endpoints {
                count(self.problems.entry(endpoint.merchant).or_default());
            }
        }
    }

    /// Tone and text for one merchant.
    pub(super) fn of(&self, merchant: &Merchant) -> (&'static str, String) {
        let problems = self.problems.get(&merchant.identifier).copied().unwrap_or_default();
        let paused = merchant.endpoints.values().filter(|endpoint| endpoint.paused).count();
        let paused = u64::try_from(paused).unwrap_or(u64::MAX);
        let parts: Vec<_> =
            [(problems.disabled, "disabled"), (problems.failing, "failing"), (paused, "paused")]
                .into_iter()
                .filter(|(number, _)| *number > 0)
                .map(|(number, state)| count(number, state, state))
                .collect();
        let is_known = self.known_until.as_ref().is_none_or(|known| merchant.identifier <= *known);
        match problems {
            _ if merchant.endpoints.is_empty() => ("", "no endpoints".to_owned()),
            Problems { failing: 0, disabled: 0 } if !parts.is_empty() => ("warn", parts.join(", ")),
            Problems { failing: 0, disabled: 0 } if !self.unavailable.is_empty() || !is_known => {
                ("", "not known".to_owned())
            }
            Problems { failing: 0, disabled: 0 } => ("good", "ok".to_owned()),
            Problems { .. } => ("bad", parts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merchant(identifier: &str, paused: &[bool]) -> Merchant {
        let endpoints: BTreeMap<_, _> = paused
            .iter()
            .enumerate()
            .map(|(n, paused)| (n.to_string(), json!({ "paused": paused })))
            .collect();
        let json = json!({
            "identifier": identifier, "name": "A", "endpoints": endpoints,
            "created_at": "2026-11-16T08:00:00Z",
        });
        serde_json::from_value(json).unwrap()
    }

    fn page(merchants: &[&str], next: Option<&str>) -> Loaded<(Service, EndpointPage)> {
        let endpoint = |merchant: &&str| Endpoint { merchant: (*merchant).to_owned() };
        let endpoints = merchants.iter().map(endpoint).collect();
        let page = EndpointPage { endpoints, next: next.map(str::to_owned) };
        Loaded { entries: vec![(Service::RmaEngine, page)], missing: Vec::new() }
    }

    #[test]
    fn the_worst_state_decides_the_tone() {
        let mut health = HealthOfAll::default();
        health.add(page(&["acme", "acme"], None), |problems| problems.failing += 1);
        health.add(page(&["acme"], None), |problems| problems.disabled += 1);
        let expected = ("bad", "1 disabled, 2 failing, 1 paused".to_owned());
        assert_eq!(health.of(&merchant("acme", &[true])), expected);
        assert_eq!(health.of(&merchant("beta", &[true, false])), ("warn", "1 paused".into()));
        assert_eq!(health.of(&merchant("beta", &[false])), ("good", "ok".into()));
        assert_eq!(health.of(&merchant("beta", &[])), ("", "no endpoints".into()));
    }

    #[test]
    fn a_merchant_is_ok_only_if_all_services_say_so() {
        let mut health = HealthOfAll::default();
        health.add(page(&["beta"], Some("beta/rma")), |problems| problems.failing += 1);
        assert_eq!(health.of(&merchant("acme", &[false])), ("good", "ok".into()));
        assert_eq!(health.of(&merchant("zeta", &[false])), ("", "not known".into()));
        let missing = vec![Service::Exchange];
        health.add(Loaded { entries: Vec::new(), missing }, |problems| problems.failing += 1);
        assert_eq!(health.of(&merchant("acme", &[false])), ("", "not known".into()));
        assert_eq!(health.unavailable, [Service::Exchange]);
    }
}
