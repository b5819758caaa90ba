//! The dry run of a replay: the deliveries that would be sent again.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use chrono::TimeDelta;
use futures_util::future::join_all;
use pages::{
    api::{ApiError, Service},
    text::{Moment, Span, count, grouped},
};
use reqwest::Method;

use super::{
    form::NewReplay,
    wire::{DryRun, Sample},
};
use crate::{
    Page, PageError, SignedIn,
    deliveries::{explain, outcome_words},
};

const SAMPLES: usize = 10;
/// Counting many deliveries takes longer than other calls.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);

/// The deliveries of all services that match.
#[derive(Default)]
pub(super) struct Preview {
    pub(super) total: u64,
    /// Whether more deliveries may match than the services count. Such a replay cannot be confirmed.
    pub(super) is_at_least: bool,
    /// Merchants with their matches.
    pub(super) by_merchant: Vec<(String, String)>,
    /// Kinds of message with their matches.
    pub(super) by_kind: Vec<(String, String)>,
    pub(super) samples: Vec<SampleEntry>,
    pub(super) duration: Option<Span>,
    /// The matches of each service that has any.
    pub(super) expected: Vec<(Service, u64)>,
    pub(super) unavailable: Vec<Service>,
    /// The reason why a service rejected the filter.
    pub(super) rejected: Option<String>,
}

pub(super) struct SampleEntry {
    pub(super) service: Service,
    pub(super) sample: Sample,
    pub(super) created: Moment,
}

impl SampleEntry {
    pub(super) fn last_response(&self) -> String {
        match (self.sample.last_status, &self.sample.last_outcome) {
            (Some(status), _) => status.to_string(),
            (None, Some(outcome)) => outcome_words(outcome).to_owned(),
            (None, None) => "–".to_owned(),
        }
    }
}

/// The accepted change of the number of matches of one service: one percent.
pub(super) fn tolerance(matches: u64) -> u64 {
    matches / 100
}

impl Preview {
    pub(super) async fn load(
        page: &Page,
        signed_in: &SignedIn,
        new: &NewReplay,
    ) -> Result<Self, PageError> {
        let (api, body) = (signed_in.api.clone().with_deadline(DEADLINE), new.dry_run());
        let runs = join_all(Service::DELIVERING.map(async |service| {
            (service, api.send_json(service, Method::POST, None, "v1/replays", &body).await)
        }))
        .await;
        let mut preview = Self::default();
        let mut loaded = Vec::new();
        for (service, run) in runs {
            match run {
                Ok(run) => loaded.push((service, run)),
                Err(
                    ApiError::Unavailable { service }
                    | ApiError::Unauthenticated { service }
                    | ApiError::TooManyRequests { service, .. },
                ) => preview.unavailable.push(service),
                Err(ApiError::Invalid(body)) => preview.rejected = Some(explain(&body)),
                Err(error) => return Err(error.into()),
            }
        }
        preview.add(page, loaded);
        Ok(preview)
    }

    fn add(&mut self, page: &Page, runs: Vec<(Service, DryRun)>) {
        let (mut merchants, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        let mut seconds = 0;
        for (service, run) in runs {
            self.add_counts(&run);
            if run.matches > 0 {
                self.expected.push((service, run.matches));
            }
            // The services send at the same time.
            seconds = run.estimated_seconds.max(seconds);
            for by in run.by_merchant {
                *merchants.entry(by.merchant).or_default() += by.matches;
            }
            for by in run.by_kind {
                *kinds.entry(by.kind).or_default() += by.matches;
            }
            self.samples.extend(run.samples.into_iter().map(|sample| SampleEntry {
                service,
                created: page.moment(sample.created_at),
                sample,
            }));
        }
        self.samples.sort_by_key(|entry| entry.sample.id);
        self.samples.truncate(SAMPLES);
        self.by_merchant = most_first(merchants);
        self.by_kind = most_first(kinds);
        self.duration = (self.total > 0).then(|| Span(TimeDelta::seconds(i64::from(seconds))));
    }

    fn add_counts(&mut self, run: &DryRun) {
        self.total += run.matches;
        self.is_at_least |= run.truncated;
    }

    /// The number of matches as a title.
    pub(super) fn title(&self) -> String {
        let title = count(self.total, "delivery matches", "deliveries match");
        if self.is_at_least { title + ", or more" } else { title }
    }

    /// The number that confirms the replay.
    pub(super) fn number(&self) -> String {
        grouped(self.total)
    }

    pub(super) fn deliveries(&self) -> String {
        count(self.total, "delivery", "deliveries")
    }

    /// The accepted change of the number of all matches.
    pub(super) fn tolerance(&self) -> String {
        grouped(self.expected.iter().map(|(_, matches)| tolerance(*matches)).sum())
    }

    /// The matches of each service as a field of the form: `rma-engine:12,exchange:3`.
    pub(super) fn expected_field(&self) -> String {
        let parts = self.expected.iter().map(|(service, matches)| format!("{service}:{matches}"));
        parts.collect::<Vec<_>>().join(",")
    }
}

/// Reads the field that [`Preview::expected_field`] writes.
pub(super) fn read_expected(field: &str) -> Option<Vec<(Service, u64)>> {
    let part = |part: &str| {
        let (service, matches) = part.split_once(':')?;
        let service = Service::from_name(service)?;
        Service::DELIVERING.contains(&service).then_some((service, matches.parse().ok()?))
    };
    field.split(',').filter(|text| !text.is_empty()).map(part).collect()
}

fn most_first(counts: BTreeMap<String, u64>) -> Vec<(String, String)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts.into_iter().map(|(name, count)| (name, grouped(count))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_form_keeps_the_matches_of_each_service() {
        let expected = vec![(Service::RmaEngine, 1190), (Service::Exchange, 14)];
        let preview = Preview { expected: expected.clone(), ..Preview::default() };
        assert_eq!(preview.expected_field(), "rma-engine:1190,exchange:14");
        assert_eq!(read_expected(&preview.expected_field()), Some(expected));
        assert_eq!(read_expected(""), Some(Vec::new()));
        for wrong in ["auth:1", "exchange", "exchange:many"] {
            assert_eq!(read_expected(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_count_that_stopped_at_its_limit_cannot_be_confirmed() {
        let run = |truncated: bool| {
            let run = json!({ "matches": 7, "truncated": truncated, "estimated_seconds": 1 });
            let mut preview = Preview::default();
            preview.add_counts(&serde_json::from_value(run).unwrap());
            preview.is_at_least
        };
        assert!(run(true));
        assert!(!run(false));
    }

    #[test]
    fn one_percent_may_change() {
        assert_eq!([0, 99, 100, 1204].map(tolerance), [0, 0, 1, 12]);
    }

    #[test]
    fn the_largest_count_comes_first() {
        let counts = [("a", 1), ("b", 3), ("c", 3)].map(|(name, count)| (name.to_owned(), count));
        let sorted = most_first(counts.into_iter().collect());
        assert_eq!(sorted.iter().map(|(name, _)| name.as_str()).collect::<String>(), "bca");
    }
}
