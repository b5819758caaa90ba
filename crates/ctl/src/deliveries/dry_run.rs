//! The result of `backhaul deliveries replay --dry-run`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::output::{Column, count, id, items, table, text_at, time, value};

const MERCHANT_COLUMNS: &[Column] = &[value("merchant", "/name"), value("messages", "/matches")];

const KIND_COLUMNS: &[Column] = &[value("kind", "/name"), value("messages", "/matches")];

const SAMPLE_COLUMNS: &[Column] = &[
    id("first messages", "/id"),
    time("created", "/created_at"),
    value("merchant", "/merchant"),
    value("kind", "/kind").wide(),
    value("event", "/event"),
    value("key", "/ordering_key"),
    value("outcome", "/last_outcome").wide(),
    value("status", "/last_status"),
];

/// Each service sends at most this many samples, and the table shows as many.
const MAX_SAMPLES: usize = 10;

/// The dry runs of all services. Each service replays its own messages, at the same time. Without `force`
/// the text says that superseded messages are skipped: the services count them with the others.
pub(super) fn describe(response: &Value, force: bool) -> String {
    let runs = items(response, "/replays");
    let matches: u64 = runs.iter().map(|run| number(run, "matches")).sum();
    if matches == 0 {
        return "No message matches.\n".to_owned();
    }
    let seconds = runs.iter().map(|run| number(run, "estimated_seconds")).max().unwrap_or_default();
    let verb = if matches == 1 { "matches" } else { "match" };
    let mut text = format!(
        "{} {verb}. A replay takes about {seconds} s. Nothing was sent.\n",
        count(matches, "message")
    );
    if !force {
        text.push_str(
            "Without --force, messages are skipped if a newer one of their key was delivered.\n",
        );
    }
    for (list, name, columns) in
        [("/by_merchant", "/merchant", MERCHANT_COLUMNS), ("/by_kind", "/kind", KIND_COLUMNS)]
    {
        text.push('\n');
        text.push_str(&table(&sums(runs, list, name), columns));
    }
    let mut samples: Vec<_> = runs.iter().flat_map(|run| items(run, "/samples")).collect();
    samples.sort_by_key(|sample| text_at(sample, "/id"));
    samples.truncate(MAX_SAMPLES);
    text.push('\n');
    text.push_str(&table(samples, SAMPLE_COLUMNS));
    text
}

fn number(item: &Value, name: &str) -> u64 {
    item.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// The matches of all services by merchant or kind, most matches first.
fn sums(runs: &[Value], list: &str, name: &str) -> Vec<Value> {
    let mut sums = BTreeMap::<_, u64>::new();
    for entry in runs.iter().flat_map(|run| items(run, list)) {
        *sums.entry(text_at(entry, name)).or_default() += number(entry, "matches");
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, matches)| std::cmp::Reverse(*matches));
    sums.into_iter().map(|(name, matches)| json!({ "name": name, "matches": matches })).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_dry_runs_of_all_services_are_one_text() {
        let sample = json!({ "id": "0198c0de-0000-7abc-8000-0123456789ab", "merchant": "acme",
            "kind": "rma", "event": "rma.created", "ordering_key": "rma:RMA-1",
            "last_outcome": "rejected", "last_status": 503, "created_at": "2026-11-15T03:48:13Z" });
        let response = json!({ "replays": [
            { "matches": 3, "estimated_seconds": 1, "samples": [sample],
              "by_merchant": [{ "merchant": "acme", "matches": 2 }, { "merchant": "nova", "matches": 1 }],
              "by_kind": [{ "kind": "rma", "matches": 3 }] },
            { "matches": 4, "estimated_seconds": 2, "samples": [],
              "by_merchant": [{ "merchant": "nova", "matches": 4 }],
              "by_kind": [{ "kind": "exchange-order", "matches": 4 }] },
        ] });
        expect![[r#"
            7 messages match. A replay takes about 2 s. Nothing was sent.
            Without --force, messages are skipped if a newer one of their key was delivered.

            MERCHANT  MESSAGES
            nova      5
            acme      2

            KIND            MESSAGES
            exchange-order  4
            rma             3

            FIRST MESSAGES      CREATED           MERCHANT  EVENT        KEY        STATUS
            0198c0de-0000-7abc  2026-11-15 03:48  acme      rma.created  rma:RMA-1  503
        "#]]
        .assert_eq(&describe(&response, false));
        assert!(!describe(&response, true).contains("skipped"));
        let none = json!({ "replays": [{ "matches": 0, "estimated_seconds": 0 }] });
        assert_eq!(describe(&none, false), "No message matches.\n");
    }
}
