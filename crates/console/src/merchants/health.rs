//! The health of the merchants in a list: which endpoints fail, are paused or have not been tried.

use std::collections::BTreeMap;

use api::delivery::EndpointPage;
use domain::{endpoint_state::EndpointState, message_kind::MessageKind};
use pages::{api::Service, text::count};

use crate::{
    PageError, SignedIn,
    merchant::Merchant,
    parts::{self, Loaded},
    states::Shown as _,
};

/// The bad endpoints of all merchants.
#[derive(Debug, Default)]
pub(super) struct HealthOfAll {
    /// The number of failing endpoints of a merchant.
    failing: BTreeMap<String, usize>,
    /// If a list was too long for one page, the health of later merchants is not known.
    known_until: Option<String>,
    /// The number of endpoints of a merchant that have not been tried.
    not_tried: BTreeMap<String, usize>,
    /// If these were too many, it is not known of later merchants whether their endpoints have been tried.
    not_tried_until: Option<String>,
    /// The services that did not respond.
    pub(super) unavailable: Vec<Service>,
}

/// Pages of endpoints that have not been tried. The merchants of one page have at most two.
const MAX_PAGES: usize = 3;

impl HealthOfAll {
    /// Asks the delivering services for failing endpoints only, which are few.
    pub(super) async fn load(signed_in: &SignedIn) -> Result<Self, PageError> {
        let query = [("state", EndpointState::Failing.name()), ("limit", "200")];
        let failing =
            parts::each(&signed_in.api, &Service::DELIVERING, "v1/endpoints", &query).await?;
        let mut health = Self::default();
        health.add_failing(failing);
        Ok(health)
    }

    /// Adds the endpoints of the listed merchants that have not been tried. The list of merchants is sorted.
    pub(super) async fn load_not_tried(
        &mut self,
        signed_in: &SignedIn,
        merchants: &[Merchant],
    ) -> Result<(), PageError> {
        let (Some(first), Some(last)) = (merchants.first(), merchants.last()) else {
            return Ok(());
        };
        let known = |service: &Service| !self.unavailable.contains(service);
        for service in Service::DELIVERING.into_iter().filter(known).collect::<Vec<_>>() {
            let mut after = format!("{}/", first.identifier);
            for page in 1..=MAX_PAGES {
                let state = EndpointState::NotTried.name();
                let query = [("state", state), ("limit", "200"), ("after", after.as_str())];
                let loaded =
                    parts::each(&signed_in.api, &[service], "v1/endpoints", &query).await?;
                let Some(next) = self.add_not_tried(loaded) else { break };
                let merchant = next.split('/').next().unwrap_or_default();
                if *merchant > *last.identifier {
                    break;
                }
                if page == MAX_PAGES {
                    let until = self.not_tried_until.take();
                    let until = until.map_or(merchant.to_owned(), |it| it.min(merchant.to_owned()));
                    self.not_tried_until = Some(until);
                }
                after = next;
            }
        }
        Ok(())
    }

    /// Counts the endpoints, and returns the cursor of the next page.
    fn add_not_tried(&mut self, loaded: Loaded<(Service, EndpointPage)>) -> Option<String> {
        self.unavailable.extend(loaded.missing);
        self.unavailable.sort();
        self.unavailable.dedup();
        let mut next = None;
        for (_, page) in loaded.entries {
            next = page.next;
            for endpoint in page.endpoints {
                *self.not_tried.entry(endpoint.merchant).or_default() += 1;
            }
        }
        next
    }

    /// Whether no endpoint that receives messages has been tried.
    fn is_not_tried(&self, merchant: &Merchant) -> bool {
        let is_kind = |name: &&String| name.parse::<MessageKind>().is_ok();
        let kinds = merchant.endpoints.keys().filter(is_kind).count();
        self.not_tried.get(&merchant.identifier).is_some_and(|not_tried| *not_tried >= kinds)
    }

    fn add_failing(&mut self, loaded: Loaded<(Service, EndpointPage)>) {
        self.unavailable.extend(loaded.missing);
        self.unavailable.sort();
        self.unavailable.dedup();
        for (_, page) in loaded.entries {
            if let (Some(_), Some(last)) = (page.next, page.endpoints.last()) {
                let known = self.known_until.get_or_insert_with(|| last.merchant.clone());
                *known = known.clone().min(last.merchant.clone());
            }
            for endpoint in page.endpoints {
                *self.failing.entry(endpoint.merchant).or_default() += 1;
            }
        }
    }

    /// Tone and text for one merchant.
    pub(super) fn of(&self, merchant: &Merchant) -> (&'static str, String) {
        use EndpointState::{Failing, Paused};
        let failing = self.failing.get(&merchant.identifier).copied().unwrap_or_default();
        let paused = merchant.endpoints.values().filter(|endpoint| endpoint.paused).count();
        let parts: Vec<_> = [(failing, Failing), (paused, Paused)]
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, state)| count(number, state.words(), state.words()))
            .collect();
        let shown = |state: EndpointState| (state.tone(), state.words().to_owned());
        let is_known = self.known_until.as_ref().is_none_or(|known| merchant.identifier <= *known);
        match failing {
            _ if merchant.endpoints.is_empty() => ("", "no endpoints".to_owned()),
            0 if !parts.is_empty() => ("warn", parts.join(", ")),
            0 if !self.unavailable.is_empty() || !is_known => ("", "not known".to_owned()),
            0 if self.is_not_tried(merchant) => shown(EndpointState::NotTried),
            0 if self.not_tried_until.as_ref().is_some_and(|it| merchant.identifier >= *it) => {
                ("", "no failures".to_owned())
            }
            0 => shown(EndpointState::Ok),
            _ => ("bad", parts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    fn merchant(identifier: &str, paused: &[bool]) -> Merchant {
        let endpoints: BTreeMap<_, _> = paused
            .iter()
            .enumerate()
            .map(|(n, paused)| (MessageKind::ALL[n].to_string(), json!({ "paused": paused })))
            .collect();
        let json = json!({
            "identifier": identifier, "name": "A", "endpoints": endpoints,
            "created_at": "2026-11-16T08:00:00Z",
        });
        serde_json::from_value(json).unwrap()
    }

    fn page(merchants: &[&str], next: Option<&str>) -> Loaded<(Service, EndpointPage)> {
        let endpoint = |merchant: &&str| fixtures::endpoint(&json!({ "merchant": merchant }));
        let endpoints = merchants.iter().map(endpoint).collect();
        let next = next.map(str::to_owned);
        let page = EndpointPage { endpoints, retry_delays_seconds: Vec::new(), next };
        Loaded { entries: vec![(Service::RmaEngine, page)], missing: Vec::new() }
    }

    #[test]
    fn the_worst_state_decides_the_tone() {
        let mut health = HealthOfAll::default();
        health.add_failing(page(&["acme", "acme"], None));
        let expected = ("bad", "2 failing, 1 paused".to_owned());
        assert_eq!(health.of(&merchant("acme", &[true])), expected);
        assert_eq!(health.of(&merchant("beta", &[true, false])), ("warn", "1 paused".into()));
        assert_eq!(health.of(&merchant("beta", &[false])), ("good", "ok".into()));
        assert_eq!(health.of(&merchant("beta", &[])), ("", "no endpoints".into()));
    }

    #[test]
    fn a_merchant_without_an_attempt_is_not_ok() {
        let mut health = HealthOfAll::default();
        let next = health.add_not_tried(page(&["acme", "acme", "beta"], Some("beta/rma")));
        assert_eq!(next.as_deref(), Some("beta/rma"));
        let not_tried = ("info", "not tried yet".to_owned());
        assert_eq!(health.of(&merchant("acme", &[false, false])), not_tried);
        assert_eq!(health.of(&merchant("beta", &[false, false])), ("good", "ok".into()));
        health.not_tried_until = Some("beta".to_owned());
        assert_eq!(health.of(&merchant("acme", &[false, false])), not_tried);
        assert_eq!(health.of(&merchant("beta", &[false, false])), ("", "no failures".into()));
    }

    #[test]
    fn a_merchant_is_ok_only_if_all_services_say_so() {
        let mut health = HealthOfAll::default();
        health.add_failing(page(&["beta"], Some("beta/rma")));
        assert_eq!(health.of(&merchant("acme", &[false])), ("good", "ok".into()));
        assert_eq!(health.of(&merchant("zeta", &[false])), ("", "not known".into()));
        let missing = vec![Service::Exchange];
        health.add_failing(Loaded { entries: Vec::new(), missing });
        assert_eq!(health.of(&merchant("acme", &[false])), ("", "not known".into()));
        assert_eq!(health.unavailable, [Service::Exchange]);
    }
}
