//! The dry run of a replay: the deliveries that would be sent again.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use api::delivery::{DryRun, MatchSample};
use chrono::TimeDelta;
use futures_util::future::join_all;
use pages::{
    api::{ApiError, Service},
    text::{Span, count, grouped},
};
use reqwest::Method;

use super::form::NewReplay;
use crate::{
    Page, PageError, SignedIn,
    deliveries::{explain, outcome_words},
    markup::{link, text, text_or_dash},
    table::Table,
};

const SAMPLES: usize = 10;
/// Counting many deliveries takes longer than other calls.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);

/// The deliveries of all services that match.
pub(super) struct Preview {
    pub(super) total: i64,
    /// Whether more deliveries may match than the services count. Such a replay cannot be confirmed.
    pub(super) is_at_least: bool,
    pub(super) by_merchant: Table,
    pub(super) by_kind: Table,
    /// The first deliveries.
    pub(super) samples: Table,
    pub(super) duration: Option<Span>,
    /// The matches of each service that has any.
    pub(super) expected: Vec<(Service, i64)>,
    pub(super) unavailable: Vec<Service>,
    /// The reason why a service rejected the filter.
    pub(super) rejected: Option<String>,
}

/// The accepted change of the number of matches of one service: one percent.
pub(super) fn tolerance(matches: i64) -> i64 {
    matches / 100
}

impl Preview {
    pub(super) async fn load(
        page: &Page,
        signed_in: &SignedIn,
        new: &NewReplay,
    ) -> Result<Self, PageError> {
        let api = signed_in.api.clone().with_deadline(DEADLINE);
        let body = new.dry_run();
        let runs = join_all(Service::DELIVERING.map(async |service| {
            (service, api.send_json(service, Method::POST, None, "v1/replays", &body).await)
        }))
        .await;
        let mut loaded = Vec::new();
        let mut unavailable = Vec::new();
        let mut rejected = None;
        for (service, run) in runs {
            match run {
                Ok(run) => loaded.push((service, run)),
                Err(
                    ApiError::Unavailable { service }
                    | ApiError::Unauthenticated { service }
                    | ApiError::TooManyRequests { service, .. },
                ) => unavailable.push(service),
                Err(ApiError::Invalid(body)) => rejected = Some(explain(&body)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { unavailable, rejected, ..Self::of(page, loaded) })
    }

    fn of(page: &Page, runs: Vec<(Service, DryRun)>) -> Self {
        let mut merchants = BTreeMap::new();
        let mut kinds = BTreeMap::new();
        let mut samples = Vec::new();
        let mut expected = Vec::new();
        let mut is_at_least = false;
        let mut seconds = 0;
        for (service, run) in runs {
            is_at_least |= run.truncated;
            if run.matches > 0 {
                expected.push((service, run.matches));
            }
            // The services send at the same time.
            seconds = run.estimated_seconds.max(seconds);
            for by in run.by_merchant {
                *merchants.entry(by.merchant).or_default() += by.matches;
            }
            for by in run.by_kind {
                *kinds.entry(by.kind).or_default() += by.matches;
            }
            samples.extend(run.samples.into_iter().map(|sample| (service, sample)));
        }
        samples.sort_by_key(|(_, sample)| sample.id);
        samples.truncate(SAMPLES);
        let total = expected.iter().map(|(_, matches)| matches).sum();
        Self {
            total,
            is_at_least,
            by_merchant: count_table("Matches by merchant", "Merchant", merchants),
            by_kind: count_table("Matches by message", "Message", kinds),
            samples: sample_table(&samples, page),
            duration: (total > 0).then(|| Span(TimeDelta::seconds(seconds))),
            expected,
            unavailable: Vec::new(),
            rejected: None,
        }
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
        grouped(self.expected.iter().map(|(_, matches)| tolerance(*matches)).sum::<i64>())
    }

    /// The matches of each service as a field of the form: `rma-engine:12,exchange:3`.
    pub(super) fn expected_field(&self) -> String {
        let parts = self.expected.iter().map(|(service, matches)| format!("{service}:{matches}"));
        parts.collect::<Vec<_>>().join(",")
    }
}

/// Reads the field that [`Preview::expected_field`] writes.
pub(super) fn read_expected(field: &str) -> Option<Vec<(Service, i64)>> {
    let part = |part: &str| {
        let (service, matches) = part.split_once(':')?;
        let service = Service::from_name(service)?;
        Service::DELIVERING
            .contains(&service)
            .then_some((service, matches.parse::<u32>().ok()?.into()))
    };
    field.split(',').filter(|text| !text.is_empty()).map(part).collect()
}

/// The largest number comes first.
fn count_table(label: &'static str, heading: &'static str, counts: BTreeMap<String, i64>) -> Table {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    Table::of(label, &counts)
        .head(heading, |(name, _)| text(name))
        .number("Deliveries", |(_, count)| text(grouped(*count)))
        .table()
}

fn sample_table(samples: &[(Service, MatchSample)], page: &Page) -> Table {
    Table::of("First deliveries", samples)
        .head("Event", |(service, it)| link(format!("/deliveries/{service}/{}", it.id), &it.event))
        .cell("Merchant", |(_, it)| text(&it.merchant))
        .wrapped("Ordering key", |(_, it)| text_or_dash(it.ordering_key.as_ref()))
        .cell("Last response", |(_, it)| match (it.last_status, &it.last_outcome) {
            (Some(status), _) => text(status),
            (None, outcome) => text_or_dash(outcome.as_deref().map(outcome_words)),
        })
        .cell("Created", |(_, it)| page.time(it.created_at))
        .table()
}

#[cfg(test)]
mod tests {
    use api::delivery::KindMatches;
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    fn preview(runs: Vec<(Service, DryRun)>) -> Preview {
        let page = fixtures::page(&fixtures::signed_in("operator", None, &json!({})));
        Preview::of(&page, runs)
    }

    #[test]
    fn the_form_keeps_the_matches_of_each_service() {
        let run = |matches| DryRun { matches, ..DryRun::default() };
        let preview = preview(vec![(Service::RmaEngine, run(1190)), (Service::Exchange, run(14))]);
        assert_eq!(preview.expected_field(), "rma-engine:1190,exchange:14");
        assert_eq!(read_expected(&preview.expected_field()), Some(preview.expected));
        assert_eq!(read_expected(""), Some(Vec::new()));
        for wrong in ["auth:1", "exchange", "exchange:many"] {
            assert_eq!(read_expected(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_count_that_stopped_at_its_limit_cannot_be_confirmed() {
        let run = |truncated| DryRun { matches: 7, truncated, ..DryRun::default() };
        assert!(preview(vec![(Service::RmaEngine, run(true))]).is_at_least);
        assert!(!preview(vec![(Service::RmaEngine, run(false))]).is_at_least);
    }

    #[test]
    fn one_percent_may_change() {
        assert_eq!([0, 99, 100, 1204].map(tolerance), [0, 0, 1, 12]);
    }

    #[test]
    fn the_largest_count_comes_first() {
        let kind = |kind: &str, matches| KindMatches { kind: kind.to_owned(), matches };
        let by_kind = vec![kind("a", 1), kind("b", 3), kind("c", 3)];
        let run = DryRun { matches: 7, by_kind, ..DryRun::default() };
        let html = preview(vec![(Service::RmaEngine, run)]).by_kind.to_string();
        let places = ["b", "c", "a"].map(|kind| html.find(&format!(">{kind}</th>")).unwrap());
        assert!(places.is_sorted(), "{html}");
    }
}
