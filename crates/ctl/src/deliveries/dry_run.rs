//! The result of `backhaul deliveries replay --dry-run`.

use serde_json::Value;

use crate::output::{Column, items, table, time, value};

const MERCHANT_COLUMNS: &[Column] = &[value("merchant", "/merchant"), value("matches", "/matches")];

const KIND_COLUMNS: &[Column] = &[value("kind", "/kind"), value("matches", "/matches")];

const SAMPLE_COLUMNS: &[Column] = &[
    value("id", "/id"),
    time("created", "/created_at"),
    value("merchant", "/merchant"),
    value("kind", "/kind"),
    value("event", "/event"),
    value("ordering key", "/ordering_key"),
    value("outcome", "/last_outcome"),
    value("status", "/last_status"),
];

/// The dry runs of all services. Each service replays its own messages, at the same time.
pub(super) fn describe(response: &Value) -> String {
    let runs = items(response, "/replays");
    let number =
        |run: &Value, name: &str| run.get(name).and_then(Value::as_i64).unwrap_or_default();
    let matches: i64 = runs.iter().map(|run| number(run, "matches")).sum();
    let seconds = runs.iter().map(|run| number(run, "estimated_seconds")).max().unwrap_or_default();
    let mut text = format!("{matches} messages match; sending them takes about {seconds} s\n");
    for (list, columns) in [
        ("/by_merchant", MERCHANT_COLUMNS),
        ("/by_kind", KIND_COLUMNS),
        ("/samples", SAMPLE_COLUMNS),
    ] {
        let rows: Vec<_> = runs.iter().flat_map(|run| items(run, list)).collect();
        if !rows.is_empty() {
            text.push('\n');
            text.push_str(&table(rows, columns));
        }
    }
    text
}
