//! The filter of deliveries, as it stands in the URL.

use chrono_tz::Tz;
use domain::message_kind::MessageKind;
use serde::Deserialize;
use uuid::Uuid;

use super::times::{input_value_in, parse_time_in, rfc3339_in};
use crate::listing::{Chip, Order, chips, query_string};

/// The outcomes of an attempt, in the API and in words.
pub(crate) const OUTCOMES: [(&str, &str); 11] = [
    ("delivered", "delivered"),
    ("rejected", "rejected (4xx or 5xx)"),
    ("timed_out", "timed out"),
    ("unreachable", "not reachable"),
    ("unauthorized", "unauthorized (401)"),
    ("redirected", "redirected (3xx)"),
    ("already_exists", "exists already (409)"),
    ("tls_failed", "TLS failed"),
    ("address_refused", "address not allowed"),
    ("response_too_large", "response too large"),
    ("token_refused", "no token from the merchant"),
];

/// An outcome in words.
pub(crate) fn outcome_words(outcome: &str) -> &str {
    OUTCOMES.iter().find(|(name, _)| *name == outcome).map_or(outcome, |(_, words)| words)
}

/// The states of deliveries in a list, with their names.
pub(crate) const STATES: &[(&str, &str)] =
    &[("", "Any"), ("pending", "pending"), ("delivered", "delivered"), ("dead", "dead")];

/// The kinds of message.
pub(crate) fn kinds() -> [&'static str; MessageKind::ALL.len()] {
    MessageKind::ALL.map(MessageKind::name)
}

/// The filter. Every field is part of the URL, as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct DeliveryFilter {
    pub(crate) merchant: String,
    pub(crate) kind: String,
    pub(crate) state: String,
    pub(crate) status: String,
    pub(crate) outcome: String,
    pub(crate) event: String,
    pub(crate) ordering_key: String,
    /// An order, an RMA, an ASN or the id of a message.
    pub(crate) text: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// The zone of the two times; UTC if it is empty.
    pub(crate) zone: String,
    /// `oldest`, or empty for the newest first.
    pub(crate) order: String,
    /// The last delivery of the previous page.
    pub(crate) after: String,
}

/// The fields of a filter that are not valid, each with the reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FilterErrors(Vec<(&'static str, &'static str)>);

impl FilterErrors {
    pub(crate) fn of(&self, field: &str) -> Option<&'static str> {
        self.0.iter().find(|(name, _)| *name == field).map(|(_, reason)| *reason)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl DeliveryFilter {
    /// The filter without spaces around its values, which are easily copied along.
    pub(crate) fn trimmed(mut self) -> Self {
        for value in [
            &mut self.merchant,
            &mut self.status,
            &mut self.event,
            &mut self.ordering_key,
            &mut self.text,
        ] {
            *value = value.trim().to_owned();
        }
        // A cursor comes from a link. One that cannot be read leads to the first page.
        if self.after.parse::<Uuid>().is_err() {
            self.after.clear();
        }
        self
    }

    /// The filter with its times in the zone of the page.
    pub(crate) fn in_zone(mut self, zone: Tz) -> Self {
        let sent = self.zone();
        if sent != zone {
            for time in [&mut self.from, &mut self.to] {
                *time = rfc3339_in(time, sent);
            }
        }
        self.zone = if zone == Tz::UTC { String::new() } else { zone.name().to_owned() };
        self
    }

    pub(crate) fn order(&self) -> Order {
        Order::of(&self.order)
    }

    fn zone(&self) -> Tz {
        self.zone.parse().unwrap_or(Tz::UTC)
    }

    pub(crate) fn zone_name(&self) -> &'static str {
        self.zone().name()
    }

    /// All fields of the form. The zone is one only together with a time.
    pub(crate) fn pairs(&self) -> [(&'static str, &str); 12] {
        let has_time = !self.from.is_empty() || !self.to.is_empty();
        [
            ("merchant", &self.merchant),
            ("kind", &self.kind),
            ("state", &self.state),
            ("status", &self.status),
            ("outcome", &self.outcome),
            ("event", &self.event),
            ("ordering_key", &self.ordering_key),
            ("text", &self.text),
            ("from", &self.from),
            ("to", &self.to),
            ("zone", if has_time { &self.zone } else { "" }),
            ("order", &self.order),
        ]
    }

    /// The filter as the query of a URL, without the page.
    pub(crate) fn query(&self) -> String {
        query_string(&self.pairs())
    }

    /// The conditions, each with the list without it.
    pub(crate) fn chips(&self) -> Vec<Chip> {
        chips("/deliveries", &self.pairs())
    }

    pub(crate) fn errors(&self) -> FilterErrors {
        let mut errors = Vec::new();
        let is_status = |text: &str| text.parse().is_ok_and(|code| (100..=999_u16).contains(&code));
        if !self.status.is_empty() && !is_status(&self.status) {
            errors.push(("status", "Write a status code with three digits, for example 503."));
        }
        let is_state = STATES.iter().any(|(state, _)| *state == self.state);
        let is_kind = self.kind.is_empty() || kinds().contains(&self.kind.as_str());
        let is_outcome = |(name, _): &(&str, &str)| *name == self.outcome;
        let is_outcome = self.outcome.is_empty() || OUTCOMES.iter().any(is_outcome);
        for (name, is_known) in [("state", is_state), ("kind", is_kind), ("outcome", is_outcome)] {
            if !is_known {
                errors.push((name, "This value is not known. Choose another one."));
            }
        }
        let [from, to] = [&self.from, &self.to].map(|text| parse_time_in(text, self.zone()));
        for (name, text, time) in [("from", &self.from, from), ("to", &self.to, to)] {
            if !text.is_empty() && time.is_none() {
                errors.push((name, "Write a date and a time, for example 2026-11-16T08:00."));
            }
        }
        if from.zip(to).is_some_and(|(from, to)| from >= to) {
            errors.push(("to", "This must be later than the start."));
        }
        FilterErrors(errors)
    }

    /// The fields as the services read them: times in RFC 3339.
    pub(crate) fn request(&self) -> Vec<(&'static str, String)> {
        let text = |(name, value): (&'static str, &str)| {
            let value = match name {
                "from" | "to" => rfc3339_in(value, self.zone()),
                _ => value.to_owned(),
            };
            (name, value)
        };
        let is_condition =
            |(name, value): &(&str, &str)| !value.is_empty() && *name != "zone" && *name != "order";
        self.pairs().into_iter().filter(is_condition).map(text).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pairs: &[(&str, &str)]) -> DeliveryFilter {
        serde_html_form::from_str(&query_string(pairs)).unwrap()
    }

    #[test]
    fn times_of_forms_are_in_utc() {
        for (typed, sent) in [
            ("2026-11-16T08:00", "2026-11-16T08:00:00Z"),
            ("2026-11-16T08:00:30", "2026-11-16T08:00:30Z"),
            ("2026-11-16T08:00:00+01:00", "2026-11-16T07:00:00Z"),
        ] {
            let filter = filter(&[("from", typed)]);
            assert_eq!(filter.request(), [("from", sent.to_owned())]);
            assert!(filter.errors().is_empty(), "{typed}");
        }
        assert_eq!(filter(&[("to", "2026-11-16T08:00Z")]).last_time(), "");
        let zoned = filter(&[("from", "2026-11-16T08:00:00Z"), ("to", "2026-11-16T08:00:07Z")]);
        assert_eq!(zoned.first_time(), "2026-11-16T08:00");
        assert_eq!(zoned.last_time(), "2026-11-16T08:00:07");
    }

    #[test]
    fn times_are_typed_in_the_zone_of_the_form_and_shown_in_that_of_the_page() {
        let typed = filter(&[("from", "2026-11-16T08:00"), ("zone", "Europe/Berlin")]);
        for zone in [Tz::Europe__Berlin, Tz::UTC, Tz::America__New_York] {
            let shown = typed.clone().in_zone(zone);
            assert_eq!(shown.request(), [("from", "2026-11-16T07:00:00Z".to_owned())], "{zone}");
            assert_eq!(shown.zone_name(), zone.name());
            // A link to another page means the same time.
            let linked: DeliveryFilter = serde_html_form::from_str(&shown.query()).unwrap();
            assert_eq!(linked.in_zone(Tz::UTC).first_time(), "2026-11-16T07:00", "{zone}");
        }
        assert_eq!(typed.in_zone(Tz::UTC).query(), "from=2026-11-16T07%3A00%3A00Z");
        let berlin = filter(&[("state", "dead")]).in_zone(Tz::Europe__Berlin);
        assert_eq!((berlin.query().as_str(), berlin.chips().len()), ("state=dead", 1));
    }

    #[test]
    fn the_order_is_no_condition() {
        let oldest = filter(&[("state", "dead"), ("order", "oldest")]);
        assert_eq!(oldest.request(), [("state", "dead".to_owned())]);
        let chips = oldest.chips();
        let chips: Vec<_> = chips.iter().map(|it| (it.text.as_str(), it.url.as_str())).collect();
        assert_eq!(chips, [("state: dead", "/deliveries?order=oldest")]);
    }

    #[test]
    fn errors_name_their_field() {
        let wrong = filter(&[("status", "5xx"), ("from", "today"), ("to", "2026-11-16T08:00")]);
        let errors = wrong.errors();
        assert!(errors.of("status").is_some() && errors.of("from").is_some());
        assert_eq!((errors.of("to"), errors.of("kind")), (None, None));
        let reversed = filter(&[("from", "2026-11-16T09:00"), ("to", "2026-11-16T08:00")]);
        assert!(reversed.errors().of("to").is_some());
    }

    #[test]
    fn unknown_values_are_errors_of_their_fields() {
        let wrong =
            filter(&[("state", "zombie"), ("kind", "rmas"), ("outcome", "x"), ("after", "zzz")]);
        let wrong = wrong.trimmed();
        let errors = wrong.errors();
        for field in ["state", "kind", "outcome"] {
            assert!(errors.of(field).is_some(), "{field}");
        }
        assert_eq!(wrong.after, "", "the first page is shown");
        assert!(filter(&[("state", "dead"), ("kind", "rma")]).errors().is_empty());
    }

    #[test]
    fn a_condition_can_be_removed() {
        let chips = filter(&[("merchant", "acme"), ("state", "dead")]).chips();
        let chips: Vec<_> = chips.iter().map(|it| (it.text.as_str(), it.url.as_str())).collect();
        let expected = [
            ("merchant: acme", "/deliveries?state=dead"),
            ("state: dead", "/deliveries?merchant=acme"),
        ];
        assert_eq!(chips, expected);
    }

    #[test]
    fn the_url_has_the_filter_as_it_was_typed() {
        let typed = filter(&[("merchant", " acme "), ("from", "2026-11-16T08:00"), ("state", "")]);
        let query = typed.trimmed().query();
        assert_eq!(query, "merchant=acme&from=2026-11-16T08%3A00");
        let again: DeliveryFilter = serde_html_form::from_str(&query).unwrap();
        assert_eq!(again.query(), query);
    }
}
