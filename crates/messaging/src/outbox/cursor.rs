//! Start of the relay's next poll.
//!
//! Deleted rows stay in the index until VACUUM removes them, and VACUUM cannot remove them while an
//! older transaction is open. A poll from the start of the index reads all of them. So most polls
//! start shortly before the last deleted row; a full poll now and then finds late commits. See
//! `docs/decisions/relay-cursor.md`.

use std::time::{Duration, Instant};

/// Sequence numbers read again before the last deleted one. They are drawn before the commit, so a
/// lower number can appear after a higher one.
const OVERLAP: i64 = 10_000;
const FULL_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// A slow full poll is repeated after this many times its duration.
const FULL_POLL_PAUSE_FACTOR: u32 = 20;
/// Sequence numbers read before the newest one while full polls time out.
const FALLBACK_OVERLAP: i64 = 1_000_000;

#[derive(Debug)]
pub(super) struct RelayCursor {
    start: i64,
    full_poll_at: Instant,
}

impl RelayCursor {
    pub(super) fn new(now: Instant) -> Self {
        Self { start: i64::MIN, full_poll_at: now }
    }

    /// First sequence number of the next poll; `i64::MIN` for a full poll.
    pub(super) fn start(&self, now: Instant) -> i64 {
        if now >= self.full_poll_at { i64::MIN } else { self.start }
    }

    pub(super) fn full_poll_ended(&mut self, took: Duration, now: Instant) {
        self.full_poll_at = now + FULL_POLL_INTERVAL.max(took * FULL_POLL_PAUSE_FACTOR);
    }

    /// Every row that the poll read is deleted. The start moves back if the poll found late rows.
    pub(super) fn deleted_up_to(&mut self, sequence: i64) {
        self.start = sequence.saturating_sub(OVERLAP);
    }

    /// A full poll timed out. Older rows wait until one succeeds.
    pub(super) fn skip_to(&mut self, newest: i64) {
        self.start = self.start.max(newest.saturating_sub(FALLBACK_OVERLAP));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: i64 = i64::MIN;

    /// Polls, finds rows up to `last` and deletes them; returns the start of the poll.
    fn poll(cursor: &mut RelayCursor, now: Instant, last: Option<i64>) -> i64 {
        let start = cursor.start(now);
        if start == FULL {
            cursor.full_poll_ended(Duration::from_millis(1), now);
        }
        if let Some(last) = last {
            cursor.deleted_up_to(last);
        }
        start
    }

    #[test]
    fn polls_start_shortly_before_the_last_deleted_row() {
        let started_at = Instant::now();
        let at = |seconds| started_at + Duration::from_secs(seconds);
        let mut cursor = RelayCursor::new(started_at);
        assert_eq!(poll(&mut cursor, at(0), Some(50_000)), FULL);
        assert_eq!(poll(&mut cursor, at(1), Some(50_500)), 40_000);
        assert_eq!(poll(&mut cursor, at(9), None), 40_500);
        assert_eq!(poll(&mut cursor, at(10), None), FULL);
        // An idle relay does not start over.
        assert_eq!(poll(&mut cursor, at(11), None), 40_500);
    }

    #[test]
    fn a_full_poll_that_times_out_is_replaced_by_a_poll_near_the_newest_row() {
        let started_at = Instant::now();
        let mut cursor = RelayCursor::new(started_at);
        cursor.full_poll_ended(Duration::from_secs(5), started_at);
        cursor.skip_to(8_000_000);
        assert_eq!(cursor.start(started_at), 7_000_000);
        cursor.skip_to(20);
        assert_eq!(cursor.start(started_at), 7_000_000);
        assert_eq!(cursor.start(started_at + Duration::from_secs(100)), FULL);
    }

    #[test]
    fn rows_behind_a_late_row_do_not_wait_for_the_next_full_poll() {
        let started_at = Instant::now();
        let at = |seconds| started_at + Duration::from_secs(seconds);
        let mut cursor = RelayCursor { start: 900_000, full_poll_at: at(5) };
        assert_eq!(poll(&mut cursor, at(1), None), 900_000);
        // All numbers are lower after a restore from a backup.
        assert_eq!(poll(&mut cursor, at(5), Some(10_100)), FULL);
        assert_eq!(poll(&mut cursor, at(6), Some(10_102)), 100);
    }

    #[test]
    fn a_slow_full_poll_is_rare() {
        let started_at = Instant::now();
        let mut cursor = RelayCursor { start: 7, full_poll_at: started_at };
        assert_eq!(cursor.start(started_at), FULL);
        cursor.full_poll_ended(Duration::from_secs(5), started_at);
        assert_eq!(cursor.start(started_at + Duration::from_secs(99)), 7);
        assert_eq!(cursor.start(started_at + Duration::from_secs(100)), FULL);
    }
}
