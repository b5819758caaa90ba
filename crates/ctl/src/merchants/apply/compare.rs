//! Comparison of the file with the current values.

use std::collections::BTreeMap;

use domain::merchant::{REDACTED, Rule};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use url::Url;

/// A value that differs.
#[derive(Debug, PartialEq, serde::Serialize)]
pub(super) struct Difference {
    pub(super) field: String,
    pub(super) from: Value,
    pub(super) to: Value,
}

/// The members of `wanted` that differ from `current`, or all without a current value. A member that
/// `wanted` does not have stays as it is. The settings in `PARTIAL` are compared by their members.
pub(super) fn differences(wanted: &Map<String, Value>, current: Option<&Value>) -> Vec<Difference> {
    const PARTIAL: [&str; 5] = ["returns", "appearance", "policy", "mails", "events"];
    let mut found = Vec::new();
    for (name, to) in wanted {
        let from = current.map(|current| current.get(name).cloned().unwrap_or_default());
        match to {
            Value::Object(members) if PARTIAL.contains(&name.as_str()) => {
                let inner = differences(members, from.as_ref()).into_iter();
                found.extend(
                    inner.map(|it| Difference { field: format!("{name}.{}", it.field), ..it }),
                );
            }
            _ if name == "rules" && from.as_ref().is_some_and(|from| are_same_rules(to, from)) => {}
            _ if name != "rules" && from.as_ref().is_some_and(|from| is_same(to, from)) => {}
            _ => {
                let field = name.clone();
                let from = from.unwrap_or_default();
                found.push(Difference { field, from, to: to.clone() });
            }
        }
    }
    found
}

/// Whether the service would store `wanted` as `current`. It completes objects with empty values, appends
/// a slash to URLs, and hides secrets.
fn is_same(wanted: &Value, current: &Value) -> bool {
    match (wanted, current) {
        (Value::Object(wanted), Value::Object(current)) => {
            let is_given = |(name, value): (&String, &Value)| {
                current.get(name).is_some_and(|current| is_same(value, current))
                    || (is_empty(value) && !current.contains_key(name))
            };
            let is_default =
                |(name, value): (&String, &Value)| wanted.contains_key(name) || is_empty(value);
            wanted.iter().all(is_given) && current.iter().all(is_default)
        }
        (Value::Array(wanted), Value::Array(current)) => {
            wanted.len() == current.len() && wanted.iter().zip(current).all(|(a, b)| is_same(a, b))
        }
        (Value::Number(wanted), Value::Number(current)) => wanted.as_f64() == current.as_f64(),
        (Value::String(_), Value::String(current)) if current == REDACTED => true,
        (Value::String(wanted), Value::String(current)) => {
            wanted == current || url(wanted).is_some_and(|wanted| Some(wanted) == url(current))
        }
        _ => wanted == current || (is_empty(wanted) && is_empty(current)),
    }
}

/// Whether the service would store `wanted` as `current`. Unlike in other settings, a value that is false or zero
/// differs from one that is absent.
fn are_same_rules(wanted: &Value, current: &Value) -> bool {
    let read = |rules: &Value| Vec::<Rule>::deserialize(rules).ok();
    read(wanted).is_some_and(|wanted| Some(wanted) == read(current))
}

/// A URL in the form that the service stores, without the values of its query, which are secrets.
fn url(text: &str) -> Option<(String, bool)> {
    let mut url = Url::parse(text).ok()?;
    let has_query = url.query().is_some();
    url.set_query(None);
    Some((url.as_str().trim_end_matches('/').to_owned(), has_query))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_set) => !is_set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
    }
}

/// The names of headers in lower case, as the service stores them, with their values.
pub(super) fn header_object(headers: &BTreeMap<String, String>) -> Value {
    headers.iter().map(|(name, value)| (name.to_lowercase(), Value::from(value.as_str()))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(wanted: Value, current: Value, expected: &[&str]) {
        let Value::Object(wanted) = wanted else { panic!("an object") };
        let found = differences(&wanted, Some(&current));
        let fields: Vec<_> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, expected);
    }

    #[test]
    fn values_that_the_service_stores_in_another_form_are_the_same() {
        let current = json!({
            "return_window_days": 30, "express_max_weight": 2.0, "concept": null,
            "base_url": "https://acme.example/hooks/", "final_sale_tags": ["Sale"],
            "support_contact": { "email": "help@acme.example", "name": null, "phone": null },
            "returns": { "free_exchange_shipping": true, "gift_card": null, "reasons": [
                { "code": "OTHER", "label": "Another", "offers_exchange": false }] },
        });
        let same = json!({
            "return_window_days": 30, "express_max_weight": 2, "concept": null,
            "base_url": "https://acme.example/hooks", "final_sale_tags": ["Sale"],
            "support_contact": { "email": "help@acme.example" },
            "returns": { "reasons": [{ "code": "OTHER", "label": "Another" }] },
        });
        check(same, current.clone(), &[]);
        let other = json!({
            "return_window_days": 60, "base_url": "https://acme.example", "final_sale_tags": [],
            "support_contact": { "email": "help@acme.example", "name": "Ada" },
            "returns": { "gift_card": { "sku": "GIFT" }, "free_exchange_shipping": true },
        });
        let fields = [
            "base_url",
            "final_sale_tags",
            "return_window_days",
            "returns.gift_card",
            "support_contact",
        ];
        check(other, current, &fields);
    }

    #[test]
    fn switches_of_mails_are_compared_one_by_one() {
        let current = json!({ "mails": {
            "reply_to": "returns@acme.example", "sender_name": null,
            "events": { "confirmed": true, "refunded": true, "received": false },
        } });
        let wanted = |refunded: bool| json!({ "mails": { "events": { "refunded": refunded } } });
        check(wanted(true), current.clone(), &[]);
        check(wanted(false), current, &["mails.events.refunded"]);
    }

    #[test]
    fn hidden_secrets_do_not_differ() {
        let current = json!({
            "url": "https://acme.example/rmas?********", "headers": { "x-shop": REDACTED },
            "authentication": { "kind": "basic", "username": "u", "password": REDACTED },
        });
        let wanted = |url: &str, username: &str| {
            json!({
                "url": url, "headers": { "x-shop": "7" },
                "authentication": { "kind": "basic", "username": username, "password": "p" },
            })
        };
        check(wanted("https://acme.example/rmas?key=1", "u"), current.clone(), &[]);
        check(wanted("https://acme.example/rmas", "v"), current, &["authentication", "url"]);
    }
}
