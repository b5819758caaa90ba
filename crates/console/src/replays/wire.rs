//! Replays as the services describe them.

use chrono::{DateTime, Utc};
use pages::text::grouped;
use serde::Deserialize;
use uuid::Uuid;

use super::filter::ReplayFilter;
use crate::{SignedIn, actors::ClientNames};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Replay {
    pub(crate) id: Uuid,
    pub(crate) requested_by: String,
    /// The person or client that last paused, resumed or stopped the replay.
    #[serde(default)]
    pub(crate) changed_by: Option<String>,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) filter: ReplayFilter,
    #[serde(default)]
    pub(crate) force: bool,
    #[serde(default)]
    pub(crate) per_second: u32,
    /// Deliveries that matched when the replay was started.
    #[serde(default)]
    pub(crate) matched: u64,
    #[serde(default)]
    pub(crate) replayed: u64,
    #[serde(default)]
    pub(crate) skipped: u64,
    #[serde(default)]
    pub(crate) failed: u64,
    pub(crate) created_at: DateTime<Utc>,
    #[serde(default)]
    pub(crate) finished_at: Option<DateTime<Utc>>,
}

/// Replaces the ids of clients by their names.
pub(crate) async fn name_clients(signed_in: &SignedIn, mut replays: Vec<&mut Replay>) {
    let actors = replays.iter().flat_map(|it| [Some(&it.requested_by), it.changed_by.as_ref()]);
    let names = ClientNames::load(signed_in, actors.flatten().map(String::as_str)).await;
    let name = |actor: &str| names.name(actor).to_owned();
    for replay in &mut replays {
        replay.requested_by = name(&replay.requested_by);
        replay.changed_by = replay.changed_by.as_deref().map(name);
    }
}

impl Replay {
    pub(crate) fn tone(&self) -> &'static str {
        match self.state.as_str() {
            "finished" if self.failed == 0 => "good",
            "running" => "info",
            _ => "warn",
        }
    }

    /// The filter in words.
    pub(crate) fn words(&self) -> String {
        self.filter.words(self.created_at)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state == "running"
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.state == "paused"
    }

    pub(crate) fn is_over(&self) -> bool {
        self.finished_at.is_some()
    }

    /// The deliveries that the replay has reached.
    pub(crate) fn done(&self) -> u64 {
        self.replayed + self.skipped + self.failed
    }

    /// The end of the progress bar. The number of matches is counted up to a limit, so that a replay
    /// may reach more.
    pub(crate) fn total(&self) -> u64 {
        self.matched.max(self.done()).max(1)
    }

    /// The effect so far, in a sentence.
    pub(crate) fn result(&self) -> String {
        let mut parts = vec![format!("{} sent again", grouped(self.replayed))];
        if self.skipped > 0 {
            parts.push(format!("{} skipped", grouped(self.skipped)));
        }
        if self.failed > 0 {
            parts.push(format!("{} failed", grouped(self.failed)));
        }
        let parts = parts.join(", ");
        if self.is_over() { parts } else { format!("{parts}, of {}", grouped(self.total())) }
    }
}

/// The result of a dry run.
#[derive(Debug, Default, Deserialize)]
pub(super) struct DryRun {
    pub(super) matches: u64,
    #[serde(default)]
    pub(super) truncated: bool,
    #[serde(default)]
    pub(super) by_merchant: Vec<MerchantMatches>,
    #[serde(default)]
    pub(super) by_kind: Vec<KindMatches>,
    #[serde(default)]
    pub(super) samples: Vec<Sample>,
    #[serde(default)]
    pub(super) estimated_seconds: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct MerchantMatches {
    pub(super) merchant: String,
    pub(super) matches: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct KindMatches {
    pub(super) kind: String,
    pub(super) matches: u64,
}

/// A delivery that matches.
#[derive(Debug, Deserialize)]
pub(super) struct Sample {
    pub(super) id: Uuid,
    pub(super) merchant: String,
    pub(super) event: String,
    #[serde(default)]
    pub(super) ordering_key: Option<String>,
    #[serde(default)]
    pub(super) last_outcome: Option<String>,
    #[serde(default)]
    pub(super) last_status: Option<u16>,
    pub(super) created_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn replay(state: &str, [matched, replayed, skipped, failed]: [u64; 4]) -> Replay {
        let finished_at = (state == "finished").then_some("2026-11-16T08:01:00Z");
        serde_json::from_value(json!({
            "id": Uuid::nil(), "requested_by": "ops@example.com", "state": state,
            "matched": matched, "replayed": replayed, "skipped": skipped, "failed": failed,
            "created_at": "2026-11-16T08:00:00Z", "finished_at": finished_at,
        }))
        .unwrap()
    }

    #[test]
    fn the_result_names_every_part() {
        let running = replay("running", [1204, 20, 0, 0]);
        assert_eq!(
            (running.result().as_str(), running.tone()),
            ("20 sent again, of 1,204", "info")
        );
        let finished = replay("finished", [1204, 1190, 14, 0]);
        assert_eq!(finished.result(), "1,190 sent again, 14 skipped");
        let failed = replay("finished", [3, 1, 1, 1]);
        assert_eq!(
            (failed.result().as_str(), failed.tone()),
            ("1 sent again, 1 skipped, 1 failed", "warn")
        );
    }

    #[test]
    fn the_progress_never_exceeds_its_end() {
        let more = replay("running", [100_000, 150_000, 0, 0]);
        assert_eq!((more.done(), more.total()), (150_000, 150_000));
        assert_eq!(replay("running", [0, 0, 0, 0]).total(), 1);
    }
}
