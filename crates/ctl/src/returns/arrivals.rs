//! Whether the messages of a return arrived.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::api_client::ApiClient;
use crate::output::{causes, items, message, text_at, time_at};

/// More messages of one return are not looked up.
const MAX_MESSAGES: usize = 1000;

/// Adds `arrived` to the timeline entries that have a message. A warning says that the deliveries could not
/// be read.
pub(super) async fn add(client: &ApiClient, rma: &str, entries: &mut [Value]) {
    let query = [("ordering_key", format!("rma:{rma}"))];
    let deliveries = client.list(&["v1", "deliveries"], "deliveries", &query, MAX_MESSAGES).await;
    let deliveries = match deliveries {
        Ok(deliveries) => deliveries,
        Err(error) => {
            let causes = causes(&error);
            message(&format!("warning: cannot tell whether the messages arrived: {causes}"));
            return;
        }
    };
    let arrivals: HashMap<_, _> = items(&deliveries, "/deliveries")
        .iter()
        .map(|delivery| (text_at(delivery, "/id"), describe(delivery)))
        .collect();
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        let id = entry.get("delivery").and_then(Value::as_str).unwrap_or_default();
        if let Some(arrived) = arrivals.get(id).cloned() {
            insert(entry, arrived);
        }
    }
}

fn insert(entry: &mut Map<String, Value>, arrived: String) {
    entry.insert("arrived".to_owned(), arrived.into());
}

fn describe(delivery: &Value) -> String {
    let last = match text_at(delivery, "/last_status").as_str() {
        "-" => text_at(delivery, "/last_outcome"),
        status => status.to_owned(),
    };
    match text_at(delivery, "/state").as_str() {
        "delivered" => "yes".to_owned(),
        "dead" => format!("no, given up after {last}"),
        _ if last == "-" => "not yet".to_owned(),
        _ => format!("not yet, {last}; next {}", time_at(delivery, "/next_attempt_at")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_arrival_is_described_in_a_few_words() {
        let check = |delivery: Value, expected: &str| assert_eq!(describe(&delivery), expected);
        check(json!({ "state": "delivered", "last_status": 200 }), "yes");
        check(json!({ "state": "dead", "last_status": 410 }), "no, given up after 410");
        check(
            json!({ "state": "dead", "last_outcome": "timed_out" }),
            "no, given up after timed_out",
        );
        check(json!({ "state": "pending" }), "not yet");
        check(
            json!({ "state": "pending", "last_status": 503, "next_attempt_at": "2026-11-16T09:30:40Z" }),
            "not yet, 503; next 2026-11-16 09:30:40Z",
        );
    }
}
