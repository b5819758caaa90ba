//! The filter of the audit log, as it stands in the URL.

use chrono_tz::Tz;
use serde::Deserialize;

use crate::{
    deliveries::{input_value_in, parse_time, rfc3339_in},
    listing::{Chip, chips, query_string},
};

/// The filter. Every field is part of the URL, as it was typed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AuditFilter {
    pub(crate) merchant: String,
    pub(crate) actor: String,
    pub(crate) action: String,
    from: String,
    to: String,
    pub(crate) after: String,
    /// The zone of the times; UTC if there is none.
    #[serde(skip)]
    zone: Option<Tz>,
}

impl AuditFilter {
    /// The filter without spaces around its values, which are easily copied along.
    pub(crate) fn trimmed(mut self) -> Self {
        for value in [&mut self.merchant, &mut self.actor, &mut self.action] {
            *value = value.trim().to_owned();
        }
        // A cursor comes from a link. One that cannot be read leads to the first page.
        if self.after.parse::<i64>().is_err() {
            self.after.clear();
        }
        self
    }

    /// The filter with times in the zone of a merchant.
    pub(crate) fn in_zone(self, zone: &str) -> Self {
        Self { zone: zone.parse().ok(), ..self }
    }

    fn zone(&self) -> Tz {
        self.zone.unwrap_or(Tz::UTC)
    }

    pub(crate) fn zone_name(&self) -> &'static str {
        self.zone().name()
    }

    fn pairs(&self) -> [(&'static str, &str); 5] {
        [
            ("merchant", &self.merchant),
            ("actor", &self.actor),
            ("action", &self.action),
            ("from", &self.from),
            ("to", &self.to),
        ]
    }

    /// Whether every record matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs().iter().all(|(_, value)| value.is_empty())
    }

    /// The filter as the query of a URL, without the page.
    pub(crate) fn query(&self) -> String {
        query_string(&self.pairs())
    }

    /// The conditions, each with the list without it.
    pub(crate) fn chips(&self) -> Vec<Chip> {
        chips("/audit", &self.pairs())
    }

    /// The query of the page after `last`.
    pub(crate) fn older(&self, last: &str) -> String {
        let pairs = self.pairs().into_iter().chain([("after", last)]);
        query_string(&pairs.collect::<Vec<_>>())
    }

    /// The parameters of the request to auth.
    pub(super) fn request(&self) -> [(&'static str, String); 7] {
        [
            ("merchant", self.merchant.clone()),
            ("actor", self.actor.clone()),
            ("action", self.action.clone()),
            ("from", rfc3339_in(&self.from, self.zone())),
            ("to", rfc3339_in(&self.to, self.zone())),
            ("after", self.after.clone()),
            ("limit", "50".to_owned()),
        ]
    }

    /// The error of the field `from`, if it is not a time.
    pub(crate) fn first_time_error(&self) -> Option<&'static str> {
        time_error(&self.from)
    }

    pub(crate) fn last_time_error(&self) -> Option<&'static str> {
        time_error(&self.to)
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.first_time_error().is_none() && self.last_time_error().is_none()
    }

    /// The value of the field `from` for a `datetime-local` input.
    pub(crate) fn first_time(&self) -> String {
        input_value_in(&self.from, self.zone())
    }

    /// The value of the field `to` for a `datetime-local` input.
    pub(crate) fn last_time(&self) -> String {
        input_value_in(&self.to, self.zone())
    }
}

fn time_error(text: &str) -> Option<&'static str> {
    let is_time = text.is_empty() || parse_time(text).is_some();
    (!is_time).then_some("Write a time like 2026-11-16T08:30.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(query: &str) -> AuditFilter {
        serde_html_form::from_str::<AuditFilter>(query).unwrap().trimmed()
    }

    #[test]
    fn the_next_page_keeps_every_condition() {
        let filter = filter("actor=+ada%40example.com&action=endpoint.set&from=2026-11-16T08:00");
        assert_eq!(
            filter.older("17"),
            "actor=ada%40example.com&action=endpoint.set&from=2026-11-16T08%3A00&after=17"
        );
        let request = filter.request();
        assert!(request.contains(&("actor", "ada@example.com".to_owned())), "{request:?}");
        assert!(request.contains(&("from", "2026-11-16T08:00:00Z".to_owned())), "{request:?}");
        assert!(filter.is_valid() && !filter.is_empty());
        assert_eq!(self::filter("after=abc").after, "", "the first page is shown");
    }

    #[test]
    fn times_are_in_the_zone_of_the_merchant() {
        let filter = filter("from=2026-11-16T08:00").in_zone("Europe/Berlin");
        let request = filter.request();
        assert!(request.contains(&("from", "2026-11-16T07:00:00Z".to_owned())), "{request:?}");
        assert_eq!(
            (filter.first_time().as_str(), filter.zone_name()),
            ("2026-11-16T08:00", "Europe/Berlin")
        );
    }

    #[test]
    fn a_time_that_cannot_be_read_is_an_error_of_its_field() {
        let filter = filter("to=yesterday");
        assert_eq!((filter.first_time_error(), filter.last_time_error().is_some()), (None, true));
        assert!(!filter.is_valid());
    }
}
