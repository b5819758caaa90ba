//! The conditions of a filter of deliveries.

use api::delivery::State;
use domain::message_kind::MessageKind;
use strum::VariantArray as _;

use crate::filter::{Condition, Kind, Options, or_any};

/// The outcomes of an attempt, in the API and in words.
pub(crate) const OUTCOMES: [(&str, &str); 12] = [
    ("delivered", "delivered"),
    ("rejected", "rejected (4xx or 5xx)"),
    ("timed_out", "timed out"),
    ("unreachable", "not reachable"),
    ("unauthorized", "unauthorized (401)"),
    ("redirected", "redirected (3xx)"),
    ("already_exists", "exists already (409)"),
    ("label_refused", "no label possible (422)"),
    ("tls_failed", "TLS failed"),
    ("address_refused", "address not allowed"),
    ("response_too_large", "response too large"),
    ("token_refused", "no token from the merchant"),
];

pub(crate) fn outcome_words(outcome: &str) -> &str {
    OUTCOMES.iter().find(|(name, _)| *name == outcome).map_or(outcome, |(_, words)| words)
}

/// The states of deliveries in a list, with their names.
pub(crate) fn states() -> Options {
    or_any(State::VARIANTS.iter().map(|state| (state.name(), state.to_string())))
}

const TIME: Kind = Kind::Time("Write a date and a time, for example 2026-11-16T08:00.");

/// The conditions of the list.
pub(crate) const CONDITIONS: &[Condition] = &conditions(states);

/// The conditions, with the states that can be chosen.
pub(crate) const fn conditions(states: fn() -> Options) -> [Condition; 10] {
    [
        Condition::MERCHANT.sent_as("merchant"),
        Condition::choice("state", "State", states),
        Condition::choice("kind", "Message", || {
            or_any(MessageKind::ALL.map(|kind| (kind.name(), kind.name().to_owned())))
        }),
        Condition::new("event", "Event", Kind::Text("rma.created")),
        Condition::choice("outcome", "Last outcome", || {
            or_any(OUTCOMES.map(|(name, words)| (name, words.to_owned())))
        }),
        Condition::new("status", "Status code", Kind::Status("503")),
        Condition::new("text", "Identifier", Kind::Text("Order, RMA, ASN or message ID")),
        Condition::new("ordering_key", "Ordering key", Kind::Text("rma:R-1001")),
        Condition::new("from", "Created from", TIME),
        Condition::new("to", "Created before", TIME),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{filter::Filter, fixtures};

    #[test]
    fn unknown_values_are_errors_of_their_fields() {
        let filter = |query: &[(&str, &str)]| {
            let signed_in = fixtures::signed_in("operator", None, &json!({}));
            let query = query.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            Filter::read(&signed_in, "/deliveries", CONDITIONS, &query.collect())
        };
        let wrong = filter(&[("state", "zombie"), ("kind", "rmas"), ("outcome", "x")]);
        for field in ["state", "kind", "outcome"] {
            assert!(wrong.error(field).is_some(), "{field}");
        }
        assert!(filter(&[("state", "dead"), ("kind", "rma")]).is_valid());
    }
}
