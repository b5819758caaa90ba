//! The timeline of a return: when, who, what, and whether the merchant's message arrived.

use std::collections::HashMap;

use api::delivery::{DeliveryView, State};
use chrono::{DateTime, Utc};
use domain::printable::printable;
use pages::{
    api::{ApiError, Service},
    text::Moment,
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    Page, SignedIn,
    actors::ClientNames,
    error::sentence,
    record_list::{Records, load, web_url, words},
};

#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    at: DateTime<Utc>,
    actor: String,
    event: String,
    #[serde(default)]
    detail: Value,
    delivery: Option<Uuid>,
}

/// The deliveries of the return's messages by identifier.
#[derive(Debug, Default)]
pub(super) struct Deliveries(HashMap<Uuid, DeliveryView>);

/// An entry on the page.
pub(super) struct Step {
    pub(super) at: Moment,
    pub(super) headline: String,
    pub(super) who: String,
    /// Details in sentences.
    pub(super) notes: Vec<String>,
    pub(super) label_url: Option<String>,
    pub(super) tone: &'static str,
    pub(super) message: Option<SentMessage>,
}

/// The message to the merchant about an entry.
pub(super) struct SentMessage {
    pub(super) id: Uuid,
    pub(super) event: String,
    pub(super) tone: &'static str,
    pub(super) state: String,
}

impl Deliveries {
    pub(super) async fn load(
        signed_in: &SignedIn,
        merchant: &str,
        rma: &str,
    ) -> Result<Self, ApiError> {
        let key = format!("rma:{rma}");
        let query = [("merchant", merchant), ("ordering_key", key.as_str()), ("limit", "200")];
        let page: Records<DeliveryView> =
            load(signed_in, Service::RmaEngine, None, "v1/deliveries", &query).await?;
        Ok(Self(page.records.into_iter().map(|message| (message.id, message)).collect()))
    }
}

impl Entry {
    /// The people, clients and services that the entry names.
    pub(super) fn actors(&self) -> impl Iterator<Item = &str> {
        let allowed_by = self.detail.get("override").and_then(|it| text(it, "by"));
        [Some(self.actor.as_str()), allowed_by].into_iter().flatten()
    }
}

pub(super) fn steps(
    entries: Vec<Entry>,
    deliveries: &Deliveries,
    names: &ClientNames,
    page: &Page,
) -> Vec<Step> {
    let step = |entry: Entry| {
        let known = entry.delivery.and_then(|id| deliveries.0.get(&id));
        let message = entry.delivery.map(|id| sent_message(id, &entry.event, known));
        Step {
            at: page.moment(entry.at),
            headline: headline(&entry.event, &entry.detail),
            who: who(names.name(&entry.actor)),
            notes: notes(&entry.detail, names),
            label_url: web_url(text(&entry.detail, "label_url")).map(str::to_owned),
            tone: message.as_ref().map_or("", |message| message.tone),
            message,
        }
    };
    entries.into_iter().map(step).collect()
}

fn sent_message(id: Uuid, event: &str, known: Option<&DeliveryView>) -> SentMessage {
    let (tone, state) = match known {
        None => ("", "was sent".to_owned()),
        Some(message) => match (message.state, message.last_status, &message.last_outcome) {
            (State::Delivered, ..) => ("good", "arrived".to_owned()),
            (State::Dead, Some(status), _) => ("bad", format!("did not arrive: response {status}")),
            (State::Dead, None, Some(outcome)) => {
                ("bad", format!("did not arrive: {}", words(outcome)))
            }
            (State::Dead, None, None) => ("bad", "did not arrive".to_owned()),
            (State::Pending, Some(status), _) => {
                ("warn", format!("has not arrived yet: response {status}"))
            }
            (State::Pending, None, _) => ("warn", "has not arrived yet".to_owned()),
        },
    };
    SentMessage { id, event: event.to_owned(), tone, state }
}

/// The change in a few words.
fn headline(event: &str, detail: &Value) -> String {
    let carrier = text(detail, "event").filter(|_| text(detail, "cause") == Some("carrier report"));
    let text = match (event, carrier) {
        (_, Some("label")) => "The carrier created a label",
        (_, Some("not_dropped_off")) => "The parcel was not handed over in time",
        (_, Some("accepted")) => "The parcel was handed over",
        (_, Some("in_transit")) => "The parcel is on its way",
        (_, Some("delivered")) => "The parcel arrived",
        (_, Some("returned")) => "The parcel went back to the shopper",
        (_, Some("failure")) => "The carrier reports a problem",
        ("rma.created", _) if text(detail, "cause") == Some("approval") => {
            "The return was approved"
        }
        ("rma.created", _) => "The return was created",
        ("request", _) => "The return was requested and waits for review",
        ("decline", _) => "The return was declined",
        ("rma.received" | "receipt", _) => "The warehouse reported units",
        ("rma.refunded" | "rma.partially_refunded", _) => "The merchant refunded units",
        ("rma.canceled" | "cancellation", _) => "Units were canceled",
        ("rma.expired" | "expiry", _) => "The return expired: no parcel was scanned in time",
        ("reminder", _) => "The shopper was reminded to send the parcel",
        ("rma.exchange_placed", _) => "The merchant accepted the exchange order",
        ("rma.exchange_failed", _) => "Units are refunded instead of exchanged",
        ("rma.exchange_unreturned" | "exchange deadline", _) => {
            "Exchanged units did not come back in time"
        }
        ("rma.guarantee_waived" | "waiver", _) => "Exchanged units were waived",
        ("exchange undeliverable", _) => "The exchange order could not be delivered",
        ("receiving closed", _) => "Receiving was closed",
        ("refund assigned", _) => "A refund was assigned to this return",
        (event, _) => {
            return sentence(&words(event.trim_start_matches("rma.")))
                .trim_end_matches('.')
                .to_owned();
        }
    };
    text.to_owned()
}

/// The person or service behind an entry.
fn who(actor: &str) -> String {
    let known = match actor {
        "order.stored.v1" => "the merchant, with an order snapshot",
        "unit.received.v1" => "the warehouse",
        "deadline" => "the deadline",
        actor if actor.starts_with("exchange.") => "the service exchange",
        actor => actor,
    };
    known.to_owned()
}

/// The details that people look for.
fn notes(detail: &Value, names: &ClientNames) -> Vec<String> {
    let field = |name: &str, label: &str| Some(format!("{label} {}.", text(detail, name)?));
    let units = |name: &str| detail.get(name).and_then(Value::as_array).map_or(0, Vec::len);
    let staff = detail.get("override").and_then(|it| {
        Some(format!("Allowed by {}: {}.", names.name(text(it, "by")?), text(it, "reason")?))
    });
    let late = match units("late") {
        0 => None,
        1 => Some("The report came too late for 1 unit.".to_owned()),
        late => Some(format!("The report came too late for {late} units.")),
    };
    let reopened = match units("reopened") {
        0 => None,
        1 => Some("1 expired unit is part of the return again.".to_owned()),
        units => Some(format!("{units} expired units are part of the return again.")),
    };
    let changed = match units("units") {
        0 => None,
        1 => Some("1 unit.".to_owned()),
        units => Some(format!("{units} units.")),
    };
    [
        changed,
        reopened,
        field("tracking_number", "Tracking number"),
        field("exchange_order_identifier", "Exchange order"),
        field("refund_identifier", "Refund"),
        field("asn_number", "ASN"),
        field("condition", "Condition"),
        field("reject_reason", "Rejected:"),
        field("reason", "Reason:"),
        field("rule", "Rule"),
        field("note", "Note:"),
        field("detail", "The carrier says:"),
        field("refused", "Not applied:"),
        staff,
        late,
    ]
    .into_iter()
    .flatten()
    .map(|note| printable(&note))
    .collect()
}

fn text<'a>(detail: &'a Value, name: &str) -> Option<&'a str> {
    detail.get(name)?.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn an_entry_says_what_happened() {
        let names = ClientNames::of([("bh_1", "Shop")]);
        let notes = |detail: &Value| notes(detail, &names);
        let label = json!({ "cause": "carrier report", "event": "label", "tracking_number": "1Z", "units": [{}, {}] });
        assert_eq!(headline("rma.tracking_updated", &label), "The carrier created a label");
        assert_eq!(notes(&label), ["2 units.", "Tracking number 1Z."]);
        for refunded in ["rma.refunded", "rma.partially_refunded"] {
            assert_eq!(headline(refunded, &json!({})), "The merchant refunded units");
        }
        assert_eq!(headline("some new event", &json!({})), "Some new event");
        let approved = json!({ "cause": "approval", "rule": "often", "units": [{}] });
        assert_eq!(headline("rma.created", &approved), "The return was approved");
        assert_eq!(notes(&approved), ["1 unit.", "Rule often."]);
        let canceled = json!({ "cause": "cancellation", "reason": "kept", "late": [{}] });
        assert_eq!(notes(&canceled), ["Reason: kept.", "The report came too late for 1 unit."]);
        let unprintable = json!({ "cause": "cancellation", "reason": "a\u{7}\u{1b}\u{202e}b" });
        assert_eq!(notes(&unprintable), ["Reason: a\u{fffd}\u{fffd}\u{fffd}b."]);
        let allowed = json!({ "override": { "by": "bh_1", "reason": "damaged" } });
        assert_eq!(notes(&allowed), ["Allowed by Shop: damaged."]);
        let entry = json!({ "at": "2026-11-16T08:00:00Z", "actor": "a@b.c", "event": "e", "detail": allowed });
        let entry: Entry = serde_json::from_value(entry).unwrap();
        assert_eq!(entry.actors().collect::<Vec<_>>(), ["a@b.c", "bh_1"]);
    }

    #[test]
    fn an_entry_says_whether_its_message_arrived() {
        let sent = |state: &str, status: Option<i32>| {
            let known = fixtures::delivery(&json!({ "state": state, "last_status": status }));
            sent_message(Uuid::nil(), "rma.created", Some(&known)).state
        };
        assert_eq!(sent("delivered", Some(200)), "arrived");
        assert_eq!(sent("dead", Some(503)), "did not arrive: response 503");
        assert_eq!(sent("pending", None), "has not arrived yet");
    }

    #[test]
    fn services_are_named_by_what_they_do() {
        assert_eq!(who("exchange.placed.v1"), "the service exchange");
        assert_eq!(who("ada@shop.test"), "ada@shop.test");
    }
}
