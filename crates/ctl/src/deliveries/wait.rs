//! Waits for replays and deliveries, and shows their progress.

use std::time::Duration;

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::Interrupted;
use crate::api_client::ApiClient;
use crate::delivery_services::find;
use crate::output::{Format, command, count, text_at, time_at};

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Shows the progress of replays until all have ended, then their result. `list_command` lists their
/// messages, which are queued again then and may not have arrived.
pub(super) async fn wait_for_replays(
    services: &[ApiClient],
    replays: &[Value],
    list_command: &str,
    format: Format,
) -> anyhow::Result<()> {
    let ids: Vec<_> = replays.iter().map(|replay| text_at(replay, "/id")).collect();
    let matched = replays.iter().map(|replay| number(replay, "matched")).sum();
    let progress = ProgressBar::new(matched).with_style(style()?).with_message("starting");
    let poll = async || {
        let replays = read_replays(services, &ids).await?;
        progress.set_position(replays.iter().map(done).sum());
        progress.set_message(states(&replays));
        let has_ended = |replay: &Value| matches!(state(replay), "finished" | "stopped");
        Ok(replays.iter().all(has_ended).then_some(replays))
    };
    let shown: Vec<_> = ids.iter().map(|id| command(&["replays", "show", id])).collect();
    let left = format!("the replay continues: {}", shown.join(" and "));
    let ended = poll_until(poll, &left).await;
    progress.finish_and_clear();
    let ended = ended?;
    format.print(&json!({ "replays": ended }), |_| describe(&ended, list_command))?;
    let failed: u64 = ended.iter().map(|replay| number(replay, "failed")).sum();
    if failed > 0 {
        bail!(
            "{} could not be replayed: the log of the service has the cause",
            count(failed, "message")
        );
    }
    if ended.iter().any(|replay| state(replay) == "stopped") {
        bail!("the replay was stopped");
    }
    Ok(())
}

/// Shows the attempts of a delivery until it is settled.
pub(super) async fn wait_for_delivery(
    services: &[ApiClient],
    id: &str,
    format: Format,
) -> anyhow::Result<()> {
    let progress = ProgressBar::new_spinner();
    let path = ["v1", "deliveries", id];
    let poll = async || {
        let delivery = find(services, async |service| service.get(&path).await).await?;
        progress.set_message(match time_at(&delivery, "/next_attempt_at").as_str() {
            "-" => "waiting for the response".to_owned(),
            at => format!("next attempt at {at}"),
        });
        progress.tick();
        Ok((state(&delivery) != "pending").then_some(delivery))
    };
    let show = command(&["deliveries", "show", id]);
    let left = format!("the message is still sent: {show}");
    let settled = poll_until(poll, &left).await;
    progress.finish_and_clear();
    let settled = settled?;
    let is_delivered = state(&settled) == "delivered";
    format.print(&settled, |_| {
        if is_delivered { "The message was delivered.\n".to_owned() } else { String::new() }
    })?;
    if !is_delivered {
        bail!("the message was not delivered: {show} has every attempt");
    }
    Ok(())
}

/// Calls `poll` until it returns a result. After Ctrl-C the error says what `left` says.
async fn poll_until<T>(
    poll: impl AsyncFn() -> anyhow::Result<Option<T>>,
    left: &str,
) -> anyhow::Result<T> {
    let until_ended = async {
        loop {
            if let Some(ended) = poll().await? {
                return Ok(ended);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        ended = until_ended => ended,
        _ = tokio::signal::ctrl_c() => Err(Interrupted(left.to_owned()).into()),
    }
}

async fn read_replays(services: &[ApiClient], ids: &[String]) -> anyhow::Result<Vec<Value>> {
    let mut replays = Vec::new();
    for id in ids {
        let path = ["v1", "replays", id];
        replays.push(find(services, async |service| service.get(&path).await).await?);
    }
    Ok(replays)
}

fn style() -> anyhow::Result<ProgressStyle> {
    Ok(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}, {elapsed}")?)
}

fn number(item: &Value, name: &str) -> u64 {
    item.get(name).and_then(Value::as_u64).unwrap_or_default()
}

fn state(item: &Value) -> &str {
    item.get("state").and_then(Value::as_str).unwrap_or_default()
}

/// The messages that a replay has processed.
fn done(replay: &Value) -> u64 {
    ["replayed", "skipped", "failed"].iter().map(|name| number(replay, name)).sum()
}

/// The states of replays that have not ended, for example `running`.
fn states(replays: &[Value]) -> String {
    let mut states: Vec<_> = replays
        .iter()
        .map(state)
        .filter(|state| !matches!(*state, "finished" | "stopped"))
        .collect();
    states.sort_unstable();
    states.dedup();
    if states.is_empty() { "finished".to_owned() } else { states.join(", ") }
}

fn describe(replays: &[Value], list_command: &str) -> String {
    let sum = |name: &str| replays.iter().map(|replay| number(replay, name)).sum::<u64>();
    let replayed = sum("replayed");
    let skipped = sum("skipped");
    let verb = if replayed == 1 { "is" } else { "are" };
    let mut text = format!("{} {verb} queued again.", count(replayed, "message"));
    if skipped > 0 {
        text.push_str(&format!(
            " {} skipped, because a newer message was delivered or the message is pending already.",
            count(skipped, "message")
        ));
    }
    text.push_str(&format!("\nSee what arrived with: {list_command}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_counts_the_messages_of_all_services() {
        let replay = |state: &str, replayed: u64, skipped: u64| json!({ "state": state, "replayed": replayed, "skipped": skipped, "failed": 0 });
        let one = [replay("finished", 1, 0), replay("finished", 0, 0)];
        assert_eq!(
            describe(&one, "backhaul deliveries list"),
            "1 message is queued again.\nSee what arrived with: backhaul deliveries list\n"
        );
        let many = [replay("finished", 3, 2), replay("running", 2, 0), replay("paused", 0, 0)];
        let text = describe(&many, "");
        assert!(
            text.starts_with("5 messages are queued again. 2 messages skipped, because"),
            "{text}"
        );
        assert_eq!(states(&many), "paused, running");
        assert_eq!((states(&one).as_str(), many.iter().map(done).sum::<u64>()), ("finished", 7));
    }
}
