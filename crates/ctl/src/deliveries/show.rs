//! One delivery as text.

use serde_json::Value;

use super::next_step;
use crate::output::{
    Column, computed, details, exact_time, items, paragraph, table, text_at, time, time_at, value,
};

const FIELDS: &[Column] = &[
    value("id", "/id"),
    value("merchant", "/merchant"),
    value("kind", "/kind"),
    value("event", "/event"),
    value("ordering key", "/ordering_key"),
    value("state", "/state"),
    time("created", "/created_at"),
    computed("attempts", attempts),
    time("next attempt", "/next_attempt_at"),
    computed("next step", next_step::describe),
    value("body", "/body"),
];

const ATTEMPT_COLUMNS: &[Column] = &[
    exact_time("time", "/started_at"),
    computed("latency", |attempt| format!("{} ms", text_at(attempt, "/latency_ms"))),
    value("outcome", "/outcome"),
    value("status", "/status"),
    computed("detail", detail),
];

/// The number of attempts. A replay begins to count again.
fn attempts(delivery: &Value) -> String {
    let count = delivery.get("attempt_count").and_then(Value::as_u64).unwrap_or_default();
    let all = u64::try_from(items(delivery, "/attempts").len()).unwrap_or(u64::MAX);
    if all > count { format!("{count} since the replay, {all} in all") } else { count.to_string() }
}

/// The explanation of an attempt, without the status code, which has a column.
fn detail(attempt: &Value) -> String {
    let status = text_at(attempt, "/status");
    let detail = text_at(attempt, "/detail");
    let rest = [format!("responded with {status}"), format!("accepted with status {status}")]
        .iter()
        .find_map(|prefix| detail.strip_prefix(prefix.as_str()))
        .map(|rest| rest.trim_start_matches([':', ' ']).to_owned());
    match rest {
        Some(rest) if rest.is_empty() => "-".to_owned(),
        Some(rest) => rest,
        None => detail,
    }
}

pub(super) fn describe(delivery: &Value) -> String {
    let attempts = items(delivery, "/attempts");
    let text = format!("{}\n{}", details(delivery, FIELDS), table(attempts, ATTEMPT_COLUMNS));
    text + &attempts.iter().map(response_body).collect::<String>()
}

/// The response of an attempt as received, unless it is empty.
fn response_body(attempt: &Value) -> String {
    match attempt.get("response_body").and_then(Value::as_str).filter(|body| !body.is_empty()) {
        Some(body) => {
            format!("\nresponse at {}:\n{}", time_at(attempt, "/started_at"), paragraph(body))
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn attempts_before_a_replay_are_counted_too() {
        let shown = |count: u64, number: usize| {
            attempts(&json!({ "attempt_count": count, "attempts": vec![json!({}); number] }))
        };
        assert_eq!(shown(2, 2), "2");
        assert_eq!(shown(1, 7), "1 since the replay, 7 in all");
        assert_eq!(shown(3, 2), "3", "the log of an attempt is missing");
    }

    #[test]
    fn a_delivery_is_shown_with_every_response_in_full() {
        let response = r#"{"message":"a warehouse of the merchant is closed","retry":"tomorrow"}"#;
        let attempts = json!([
            { "started_at": "2026-11-15T03:48:13Z", "latency_ms": 12, "outcome": "rejected",
              "status": 503, "detail": "responded with 503", "response_body": response },
            { "started_at": "2026-11-15T03:49:13Z", "latency_ms": 500, "outcome": "timed_out",
              "status": null, "detail": "no response within the timeout", "response_body": "" },
            { "started_at": "2026-11-15T03:50:13Z", "latency_ms": 9, "outcome": "rejected",
              "status": 500, "detail": "responded with 500", "response_body": "one\u{1b}[2J\ntwo" },
        ]);
        let delivery = json!({
            "id": "0198c0de-0000-7abc-8000-0123456789ab", "merchant": "acme", "kind": "rma",
            "state": "dead", "attempt_count": 2, "last_outcome": "timed_out",
            "last_error": "no response within the timeout", "attempts": attempts,
            "body": format!("[{response},{response}]"),
        });
        let text = describe(&delivery);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let (_, attempts) = text.split_once("\n\n").unwrap();
        expect![[r#"
            TIME                  LATENCY  OUTCOME    STATUS  DETAIL
            2026-11-15 03:48:13Z  12 ms    rejected   503     -
            2026-11-15 03:49:13Z  500 ms   timed_out  -       no response within the timeout
            2026-11-15 03:50:13Z  9 ms     rejected   500     -

            response at 2026-11-15 03:48:13Z:
            {"message":"a warehouse of the merchant is closed","retry":"tomorrow"}

            response at 2026-11-15 03:50:13Z:
            one�[2J
            two
        "#]]
        .assert_eq(attempts);
    }

    #[test]
    fn the_detail_of_an_attempt_does_not_repeat_its_status() {
        let check = |status: Value, text: &str, expected: &str| {
            assert_eq!(detail(&json!({ "status": status, "detail": text })), expected);
        };
        check(json!(200), "accepted with status 200", "-");
        check(json!(503), "responded with 503", "-");
        check(json!(409), "responded with 409: there is an order", "there is an order");
        check(Value::Null, "could not be reached: no route", "could not be reached: no route");
    }
}
