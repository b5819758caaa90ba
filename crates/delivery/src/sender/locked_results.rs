//! Results of attempts whose rows other transactions have locked. Each is tried again with growing pauses, while
//! others are settled.

use std::collections::HashMap;
use std::time::Duration;

use platform::retry::Backoff;
use tokio::time::Instant;
use uuid::Uuid;

use crate::queue_message::AttemptKey;
use crate::settlement::Settlement;

const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(3);

#[derive(Default)]
pub(super) struct LockedResults {
    waiting: Vec<WaitingResult>,
    /// The pauses of the results that are tried again now.
    retried: HashMap<AttemptKey, Backoff>,
}

struct WaitingResult {
    settlement: Settlement,
    retry_at: Instant,
    backoff: Backoff,
}

impl LockedResults {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Time at which a result must be tried again.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.retry_at).min()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = Uuid> + '_ {
        self.waiting.iter().map(|waiting| waiting.settlement.id())
    }

    /// Takes up to `max` results that are due, the earliest first.
    pub(super) fn take_due(&mut self, now: Instant, max: usize) -> Vec<Settlement> {
        self.waiting.sort_by_key(|waiting| waiting.retry_at);
        let due = self.waiting.partition_point(|waiting| waiting.retry_at <= now).min(max);
        let mut taken = Vec::with_capacity(due);
        for WaitingResult { settlement, backoff, .. } in self.waiting.drain(..due) {
            self.retried.insert(settlement.message.key(), backoff);
            taken.push(settlement);
        }
        taken
    }

    /// Notes the end of a batch, and lets those of its results wait that are locked.
    pub(super) fn batch_ended(&mut self, locked: Vec<Settlement>, now: Instant) {
        for settlement in locked {
            let retried = self.retried.remove(&settlement.message.key());
            let mut backoff = retried.unwrap_or_else(|| Backoff::new(MIN_PAUSE, MAX_PAUSE));
            let retry_at = now + backoff.pause();
            self.waiting.push(WaitingResult { settlement, retry_at, backoff });
        }
        self.retried.clear();
    }

    /// Makes all results due.
    pub(super) fn end_pauses(&mut self, now: Instant) {
        self.waiting.iter_mut().for_each(|waiting| waiting.retry_at = now);
    }
}

#[cfg(test)]
mod tests {
    use platform::Timestamp;

    use super::*;
    use crate::outcome::{Decision, Signal};
    use crate::settlement::tests::settlement;

    fn delivered() -> Settlement {
        let id = Uuid::new_v4();
        settlement(id, Decision::Delivered, Signal::Grow, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn pauses_of_a_locked_result_grow_until_it_is_settled() {
        let (mut results, mut now) = (LockedResults::default(), Instant::now());
        results.batch_ended(vec![delivered()], now);
        assert!(results.take_due(now, 10).is_empty());
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let due_at = results.due_at().unwrap();
            pauses.push(due_at - now);
            now = due_at;
            let taken = results.take_due(now, 10);
            assert_eq!((taken.len(), results.is_empty()), (1, true));
            results.batch_ended(taken, now);
        }
        assert!(pauses[0] <= MIN_PAUSE * 2, "{pauses:?}");
        assert!(pauses[7] >= MAX_PAUSE / 2, "{pauses:?}");
        // It is settled, and another attempt starts with the first pause.
        drop(results.take_due(results.due_at().unwrap(), 10));
        results.batch_ended(Vec::new(), now);
        results.batch_ended(vec![delivered()], now);
        assert!(results.due_at().unwrap() - now <= MIN_PAUSE * 2);
    }

    #[test]
    fn results_that_are_due_first_are_taken_first() {
        let (mut results, now) = (LockedResults::default(), Instant::now());
        let first = delivered();
        let id = first.id();
        results.batch_ended(vec![first], now);
        results.batch_ended(vec![delivered(), delivered()], now + MAX_PAUSE);
        let later = now + MAX_PAUSE * 2;
        let taken: Vec<_> = results.take_due(later, 1).iter().map(Settlement::id).collect();
        assert_eq!((taken, results.ids().count()), (vec![id], 2));
        results.end_pauses(now);
        assert_eq!(results.take_due(now, 10).len(), 2);
        assert!(results.is_empty() && results.due_at().is_none());
    }
}
