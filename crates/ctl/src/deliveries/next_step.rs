//! The next step of a delivery, and the reason, in one sentence.

use serde_json::Value;

use crate::output::{command, count, line_at, text_at, time_at};

pub(crate) fn describe(delivery: &Value) -> String {
    match text_at(delivery, "/state").as_str() {
        "delivered" => {
            let at = time_at(delivery, "/last_attempt_at");
            format!("nothing: it arrived at {at} with status {}", text_at(delivery, "/last_status"))
        }
        "dead" => dead(delivery),
        _ => pending(delivery),
    }
}

fn dead(delivery: &Value) -> String {
    let reason = match text_at(delivery, "/last_outcome").as_str() {
        "already_exists" => "because the merchant has this exchange order already".to_owned(),
        _ => format!("after {}: {}", count(attempts(delivery), "attempt"), cause(delivery)),
    };
    let replay = command(&["deliveries", "replay", &text_at(delivery, "/id")]);
    let next = match text_at(delivery, "/superseded_by").as_str() {
        "-" => format!("{replay} sends it again"),
        newer => format!(
            "it is superseded, because the newer message {newer} was delivered; {replay} --force sends \
             it anyway"
        ),
    };
    format!("nothing: it was given up {reason}; {next}")
}

fn pending(delivery: &Value) -> String {
    let [merchant, kind] = ["/merchant", "/kind"].map(|pointer| text_at(delivery, pointer));
    let detail = text_at(delivery, "/waiting/detail");
    match text_at(delivery, "/waiting/reason").as_str() {
        "endpoint_paused" => {
            let resume = command(&["endpoint", "resume", &merchant, &kind]);
            format!("it waits because {detail}; {resume} sends it")
        }
        "behind_another" => {
            let key = text_at(delivery, "/ordering_key");
            let list = command(&["deliveries", "list", "--ordering-key", &key]);
            format!("it waits because {detail}; {list} shows them")
        }
        "next_attempt" => next_attempt(delivery),
        _ => detail,
    }
}

fn next_attempt(delivery: &Value) -> String {
    let failed = attempts(delivery);
    let at = time_at(delivery, "/next_attempt_at");
    if failed == 0 {
        return format!("the first attempt is at {at}");
    }
    let of_all = match text_at(delivery, "/max_attempts").as_str() {
        "-" => String::new(),
        all => format!(" of {all}"),
    };
    format!("attempt {}{of_all} is at {at}, because {}", failed + 1, cause(delivery))
}

fn attempts(delivery: &Value) -> u64 {
    delivery.get("attempt_count").and_then(Value::as_u64).unwrap_or_default()
}

/// The reason of the last failure.
fn cause(delivery: &Value) -> String {
    match text_at(delivery, "/last_status").as_str() {
        "-" => format!("the last one failed: {}", line_at(delivery, "/last_error")),
        status => format!("the endpoint responded with {status} to the last one"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(facts: Value, expected: &str) {
        let mut delivery = json!({
            "id": "0198c0de-0000-7abc", "merchant": "acme", "kind": "rma", "ordering_key": "rma:1",
            "state": "pending", "attempt_count": 2, "max_attempts": 6, "last_status": 503,
            "last_outcome": "rejected", "next_attempt_at": "2026-11-16T09:30:40Z",
        });
        let (Value::Object(all), Value::Object(facts)) = (&mut delivery, facts) else { panic!() };
        all.extend(facts);
        assert_eq!(describe(&delivery), expected);
    }

    #[test]
    fn each_state_has_its_sentence() {
        let waiting = |reason: &str, detail: &str| json!({ "waiting": { "reason": reason, "detail": detail } });
        check(
            waiting("next_attempt", "the next attempt is at 2026-11-16T09:30:40Z"),
            "attempt 3 of 6 is at 2026-11-16 09:30:40Z, because the endpoint responded with 503 to the last one",
        );
        check(
            waiting("endpoint_paused", "the endpoint is paused"),
            "it waits because the endpoint is paused; backhaul endpoint resume acme rma sends it",
        );
        check(
            waiting("behind_another", "an earlier message of its ordering key is not settled"),
            "it waits because an earlier message of its ordering key is not settled; backhaul deliveries \
             list --ordering-key rma:1 shows them",
        );
        check(
            json!({ "ordering_key": "inbound_asn:ASN1;touch$IFS/x:1",
                    "waiting": { "reason": "behind_another", "detail": "others are first" } }),
            "it waits because others are first; backhaul deliveries list --ordering-key \
             'inbound_asn:ASN1;touch$IFS/x:1' shows them",
        );
        check(waiting("sending", "it is being sent"), "it is being sent");
        check(
            json!({ "state": "dead", "attempt_count": 6, "last_status": null, "last_error": "no route" }),
            "nothing: it was given up after 6 attempts: the last one failed: no route; backhaul \
             deliveries replay 0198c0de-0000-7abc sends it again",
        );
        check(
            json!({ "state": "dead", "attempt_count": 1 }),
            "nothing: it was given up after 1 attempt: the endpoint responded with 503 to the last one; \
             backhaul deliveries replay 0198c0de-0000-7abc sends it again",
        );
        check(
            json!({ "state": "dead", "attempt_count": 1, "superseded_by": "0198c0de-0000-7abd" }),
            "nothing: it was given up after 1 attempt: the endpoint responded with 503 to the last one; \
             it is superseded, because the newer message 0198c0de-0000-7abd was delivered; backhaul \
             deliveries replay 0198c0de-0000-7abc --force sends it anyway",
        );
        check(
            json!({ "state": "delivered", "last_status": 200, "last_attempt_at": "2026-11-16T09:31:00Z" }),
            "nothing: it arrived at 2026-11-16 09:31:00Z with status 200",
        );
    }
}
