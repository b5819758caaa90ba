//! The rules by which personal data in JSON is replaced.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::EmailDigest;
use super::personal_fields::{DocumentKind, EMAILS, PEOPLE, TEXTS};

/// Replaces a personal text.
pub const ERASED: &str = "erased";
/// Replaces an e-mail address. No mail can be sent to it (RFC 2606).
pub const ERASED_EMAIL: &str = "erased@invalid";

/// Texts of an object about a person that stay.
const KEPT: [&str; 4] = ["country_code", "country", "created_at", "updated_at"];
const IDENTIFIERS: [&str; 2] = ["identifier", "id"];

/// Whether a text replaces an erased one.
pub fn is_erased(text: &str) -> bool {
    text == ERASED || text == ERASED_EMAIL
}

/// Replaces the personal data in a value.
pub fn erase(value: &mut Value) {
    erase_members(value, DocumentKind::Common);
}

/// Replaces the personal data in an entry of a history, where people also write reasons and details.
pub fn erase_history(value: &mut Value) {
    erase_members(value, DocumentKind::History);
}

/// Replaces the personal data in an inbound ASN, a shipment or a receipt, where people also write the reason of a
/// return.
pub fn erase_report(value: &mut Value) {
    erase_members(value, DocumentKind::Report);
}

/// Replaces the personal data in a mail to a shopper: nothing of it is left but its sender.
pub fn erase_mail(value: &mut Value) {
    erase_members(value, DocumentKind::Mail);
}

/// Whether a shipment, a receipt or a line of an inbound ASN is about one of these orders or returns. Others of the
/// same ASN, and shipments of many orders to a store, belong to no single shopper.
pub fn is_report_about(report: &Value, names: &HashSet<&str>) -> bool {
    let is_named = |pointer| match report.pointer(pointer) {
        Some(Value::String(text)) => names.contains(text.as_str()),
        Some(Value::Number(number)) => names.contains(number.to_string().as_str()),
        _ => false,
    };
    let pointers =
        ["/shipment_identifier", "/reference/identifier", "/reference/alternate_identifier"];
    pointers.into_iter().any(is_named)
}

/// Applies an erasure to JSON in a text. Returns `None` if that changes nothing, so that the text can stay
/// as it is. A text that is not JSON is replaced as a whole.
pub fn erase_text(text: &str, erase: impl Fn(&mut Value)) -> Option<String> {
    let Ok(before) = serde_json::from_str::<Value>(text) else {
        return (!text.is_empty() && text != ERASED).then(|| ERASED.to_owned());
    };
    let mut after = before.clone();
    erase(&mut after);
    (after != before).then(|| after.to_string())
}

/// Replaces an e-mail address wherever it is the whole text.
pub fn erase_email(value: &mut Value, email: &EmailDigest) {
    match value {
        Value::String(text) if email.is_of(text) => ERASED_EMAIL.clone_into(text),
        Value::Array(elements) => elements.iter_mut().for_each(|it| erase_email(it, email)),
        Value::Object(members) => members.values_mut().for_each(|it| erase_email(it, email)),
        _ => {}
    }
}

fn erase_members(value: &mut Value, kind: DocumentKind) {
    match value {
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| erase_members(element, kind));
        }
        Value::Object(members) => {
            for (key, member) in members {
                erase_member(key, member, kind);
            }
        }
        _ => {}
    }
}

fn erase_member(key: &str, member: &mut Value, kind: DocumentKind) {
    match member {
        Value::String(text) if EMAILS.contains(&key) || kind.more_emails().contains(&key) => {
            ERASED_EMAIL.clone_into(text);
        }
        Value::String(text) if TEXTS.contains(&key) || kind.more_texts().contains(&key) => {
            ERASED.clone_into(text);
        }
        // The URL of a label shows the shopper's address.
        Value::Object(_) if key == "label" => *member = Value::Null,
        Value::Object(person) if PEOPLE.contains(&key) => erase_person(person),
        other => erase_members(other, kind),
    }
}

/// Replaces every text of an object about a person. An identifier stays, unless it is an e-mail address.
fn erase_person(person: &mut Map<String, Value>) {
    for (key, member) in person {
        let key = key.as_str();
        match member {
            _ if KEPT.contains(&key) => {}
            Value::String(text) if IDENTIFIERS.contains(&key) && !text.contains('@') => {}
            Value::String(text) if IDENTIFIERS.contains(&key) => ERASED_EMAIL.clone_into(text),
            Value::String(text) if EMAILS.contains(&key) => ERASED_EMAIL.clone_into(text),
            Value::String(text) => ERASED.clone_into(text),
            Value::Number(_) if !IDENTIFIERS.contains(&key) => *member = Value::Null,
            Value::Array(elements) => {
                elements.iter_mut().filter_map(Value::as_object_mut).for_each(erase_person);
                elements.retain(Value::is_object);
            }
            Value::Object(inner) => erase_person(inner),
            _ => {}
        }
    }
}
