//! A replay with the service that runs it.

use api::delivery::{ReplayState, ReplayView};
use pages::{api::Service, text::grouped};

use super::filter;
use crate::{SignedIn, actors::ClientNames};

/// A replay with the service that runs it.
pub(crate) struct ReplayEntry {
    pub(crate) service: Service,
    pub(crate) replay: ReplayView,
}

/// Replaces the ids of clients by their names.
pub(crate) async fn name_clients(signed_in: &SignedIn, mut replays: Vec<&mut ReplayView>) {
    let actors = replays.iter().flat_map(|it| [Some(&it.requested_by), it.changed_by.as_ref()]);
    let names = ClientNames::load(signed_in, actors.flatten().map(String::as_str)).await;
    let name = |actor: &str| names.name(actor).to_owned();
    for replay in &mut replays {
        replay.requested_by = name(&replay.requested_by);
        replay.changed_by = replay.changed_by.as_deref().map(name);
    }
}

impl ReplayEntry {
    pub(super) fn url(&self) -> String {
        format!("/replays/{}/{}", self.service, self.replay.id)
    }

    /// The filter in words.
    pub(super) fn words(&self) -> String {
        filter::words(&self.replay.filter, self.replay.created_at)
    }

    /// The query of a list of the deliveries.
    pub(super) fn query(&self) -> String {
        filter::query(&self.replay.filter)
    }

    pub(super) fn is(&self, state: ReplayState) -> bool {
        self.replay.state == state
    }

    pub(super) fn is_over(&self) -> bool {
        self.replay.finished_at.is_some()
    }

    /// The deliveries that the replay has reached.
    pub(super) fn done(&self) -> i64 {
        self.replay.replayed + self.replay.skipped + self.replay.failed
    }

    /// The end of the progress bar. The number of matches is counted up to a limit, so that a replay
    /// may reach more.
    pub(super) fn total(&self) -> i64 {
        self.replay.matched.max(self.done()).max(1)
    }

    /// The effect so far, in a sentence.
    pub(super) fn result(&self) -> String {
        let mut parts = vec![format!("{} sent again", grouped(self.replay.replayed))];
        if self.replay.skipped > 0 {
            parts.push(format!("{} skipped", grouped(self.replay.skipped)));
        }
        if self.replay.failed > 0 {
            parts.push(format!("{} failed", grouped(self.replay.failed)));
        }
        let parts = parts.join(", ");
        if self.is_over() { parts } else { format!("{parts}, of {}", grouped(self.total())) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::states::Shown as _;

    fn replay(state: &str, [matched, replayed, skipped, failed]: [u64; 4]) -> ReplayEntry {
        let finished_at = (state == "finished").then_some("2026-11-16T08:01:00Z");
        let replay = json!({
            "id": Uuid::nil(), "requested_by": "ops@example.com", "state": state, "filter": {},
            "force": false, "per_second": 50, "matched": matched, "replayed": replayed,
            "skipped": skipped, "failed": failed, "created_at": "2026-11-16T08:00:00Z",
            "finished_at": finished_at,
        });
        let replay = serde_json::from_value(replay).unwrap();
        ReplayEntry { service: Service::RmaEngine, replay }
    }

    #[test]
    fn the_result_names_every_part() {
        let running = replay("running", [1204, 20, 0, 0]);
        assert_eq!(
            (running.result().as_str(), running.replay.tone()),
            ("20 sent again, of 1,204", "info")
        );
        let finished = replay("finished", [1204, 1190, 14, 0]);
        assert_eq!(finished.result(), "1,190 sent again, 14 skipped");
        let failed = replay("finished", [3, 1, 1, 1]);
        assert_eq!(
            (failed.result().as_str(), failed.replay.tone()),
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
