//! The rows that the relay polls next.
//!
//! Deleted rows stay in the index until VACUUM removes them, and VACUUM cannot remove them while an
//! older transaction is open. A poll from the start of the index reads all of them. So most polls
//! start after the last row; a full poll now and then finds all others.
//!
//! ```text
//! sequence   101    102  103   104    105  106 ...
//!            moved   skipped   moved  start of the next poll
//! ```
//!
//! Skipped numbers were drawn, but not committed when 104 was read. They are searched for a minute. A full poll
//! reads from the lowest sequence number, every ten seconds or after 100 times its own duration.
//!
//! See docs/decisions/relay-cursor.md.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Sequence numbers are drawn before the commit, so a lower number can appear after a higher one. Each
/// number that a poll skipped is searched for this long.
const SKIPPED_FOR: Duration = Duration::from_secs(60);
/// Skipped numbers that are searched for. Rolled-back transactions leave theirs for good.
const MAX_SKIPPED: usize = 4096;
/// The same for the first poll. Nearly all lower numbers were published before.
const FIRST_SKIPPED: i64 = 256;
const FULL_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// A slow full poll is repeated after this many times its duration.
const FULL_POLL_PAUSE_FACTOR: u32 = 100;
/// Sequence numbers read before the newest one while full polls time out.
const FALLBACK_OVERLAP: i64 = 1_000_000;

/// The rows that a poll reads, beside those with skipped numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Poll {
    Full,
    /// The rows from this sequence number on.
    From(i64),
}

impl Poll {
    pub(super) fn first_sequence(self) -> i64 {
        match self {
            Self::Full => i64::MIN,
            Self::From(start) => start,
        }
    }
}

#[derive(Debug)]
pub(super) struct RelayCursor {
    /// First sequence number that no poll has reached; none before the first row.
    start: Option<i64>,
    /// Lower numbers that no poll has found, with the time at which they were skipped.
    skipped: BTreeMap<i64, Instant>,
    full_poll_at: Instant,
}

impl RelayCursor {
    pub(super) fn new(now: Instant) -> Self {
        Self { start: None, skipped: BTreeMap::new(), full_poll_at: now }
    }

    pub(super) fn next_poll(&self, now: Instant) -> Poll {
        match self.start {
            Some(start) if now < self.full_poll_at => Poll::From(start),
            _ => Poll::Full,
        }
    }

    /// Lower numbers that the next poll looks for; none for a full poll, which finds them.
    pub(super) fn skipped(&mut self, now: Instant) -> Vec<i64> {
        self.skipped.retain(|_, skipped_at| now < *skipped_at + SKIPPED_FOR);
        if now >= self.full_poll_at { Vec::new() } else { self.skipped.keys().copied().collect() }
    }

    pub(super) fn end_full_poll(&mut self, took: Duration, now: Instant) {
        self.full_poll_at = now + FULL_POLL_INTERVAL.max(took * FULL_POLL_PAUSE_FACTOR);
    }

    /// Advances after a poll whose rows were moved to the published events. The start moves back if a full poll
    /// found a row that no poll had skipped: rows restored from the backup have lower numbers.
    pub(super) fn advance(&mut self, sequences: &[i64], now: Instant) {
        let Some(last) = sequences.iter().copied().max() else { return };
        let next = last.saturating_add(1);
        if self.start.is_none_or(|start| last >= start) {
            let max_skipped = i64::try_from(MAX_SKIPPED).unwrap_or(i64::MAX);
            let first_gap = match self.start {
                Some(start) => start.max(last.saturating_sub(max_skipped)),
                None => last.saturating_sub(FIRST_SKIPPED),
            };
            self.skipped.extend((first_gap..last).map(|number| (number, now)));
            self.start = Some(next);
        } else if !self.skipped.contains_key(&last) {
            self.start = Some(next);
            self.skipped.split_off(&next);
        }
        for sequence in sequences {
            self.skipped.remove(sequence);
        }
        while self.skipped.len() > MAX_SKIPPED {
            self.skipped.pop_first();
        }
    }

    /// A full poll timed out. Older rows wait until one succeeds.
    pub(super) fn skip_to(&mut self, newest: i64) {
        let near_newest = newest.saturating_sub(FALLBACK_OVERLAP);
        self.start = Some(self.start.map_or(near_newest, |start| start.max(near_newest)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls, finds these rows and deletes them; returns the poll and the skipped numbers.
    fn poll(cursor: &mut RelayCursor, now: Instant, rows: &[i64]) -> (Poll, Vec<i64>) {
        let poll = cursor.next_poll(now);
        let skipped = cursor.skipped(now);
        if poll == Poll::Full {
            cursor.end_full_poll(Duration::from_millis(1), now);
        }
        cursor.advance(rows, now);
        (poll, skipped)
    }

    #[test]
    fn polls_start_after_the_last_deleted_row() {
        let started_at = Instant::now();
        let at = |seconds| started_at + Duration::from_secs(seconds);
        let mut cursor = RelayCursor::new(started_at);
        assert_eq!(poll(&mut cursor, at(0), &[50_000]).0, Poll::Full);
        cursor.skipped.clear();
        assert_eq!(poll(&mut cursor, at(1), &[50_001, 50_002]), (Poll::From(50_001), vec![]));
        assert_eq!(poll(&mut cursor, at(9), &[]), (Poll::From(50_003), vec![]));
        assert_eq!(poll(&mut cursor, at(10), &[]).0, Poll::Full);
        // An idle relay does not start over.
        assert_eq!(poll(&mut cursor, at(11), &[]), (Poll::From(50_003), vec![]));
    }

    #[test]
    fn a_skipped_number_is_searched_for_until_it_is_found_or_a_minute_has_passed() {
        let started_at = Instant::now();
        let at = |seconds| started_at + Duration::from_secs(seconds);
        let mut cursor =
            RelayCursor { start: Some(10), skipped: BTreeMap::new(), full_poll_at: at(1000) };
        assert_eq!(poll(&mut cursor, at(0), &[10, 12, 14]), (Poll::From(10), vec![]));
        assert_eq!(poll(&mut cursor, at(1), &[11, 15]), (Poll::From(15), vec![11, 13]));
        assert_eq!(poll(&mut cursor, at(59), &[]), (Poll::From(16), vec![13]));
        assert_eq!(poll(&mut cursor, at(60), &[]), (Poll::From(16), vec![]));
    }

    #[test]
    fn a_jump_of_the_numbers_skips_a_limited_number() {
        let now = Instant::now();
        let full_poll_at = now + FULL_POLL_INTERVAL;
        let mut cursor = RelayCursor { start: Some(10), skipped: BTreeMap::new(), full_poll_at };
        cursor.advance(&[1_794_859_200_000], now);
        assert_eq!(cursor.skipped(now).len(), MAX_SKIPPED);
        assert_eq!(cursor.skipped(now).last(), Some(&1_794_859_199_999));
    }

    #[test]
    fn a_full_poll_that_times_out_is_replaced_by_a_poll_near_the_newest_row() {
        let started_at = Instant::now();
        let mut cursor = RelayCursor::new(started_at);
        cursor.end_full_poll(Duration::from_secs(5), started_at);
        cursor.skip_to(8_000_000);
        assert_eq!(cursor.next_poll(started_at), Poll::From(7_000_000));
        cursor.skip_to(20);
        assert_eq!(cursor.next_poll(started_at), Poll::From(7_000_000));
        assert_eq!(cursor.next_poll(started_at + Duration::from_secs(500)), Poll::Full);
    }

    #[test]
    fn rows_behind_a_late_row_do_not_wait_for_the_next_full_poll() {
        let started_at = Instant::now();
        let at = |seconds| started_at + Duration::from_secs(seconds);
        let mut cursor =
            RelayCursor { start: Some(900_000), skipped: BTreeMap::new(), full_poll_at: at(5) };
        assert_eq!(poll(&mut cursor, at(1), &[]).0, Poll::From(900_000));
        // Rows restored from the backup have lower numbers.
        assert_eq!(poll(&mut cursor, at(5), &[10_100]).0, Poll::Full);
        assert_eq!(poll(&mut cursor, at(6), &[10_101]).0, Poll::From(10_101));
    }

    #[test]
    fn a_slow_full_poll_is_rare() {
        let started_at = Instant::now();
        let mut cursor =
            RelayCursor { start: Some(7), skipped: BTreeMap::new(), full_poll_at: started_at };
        assert_eq!(cursor.next_poll(started_at), Poll::Full);
        cursor.end_full_poll(Duration::from_secs(5), started_at);
        assert_eq!(cursor.next_poll(started_at + Duration::from_secs(499)), Poll::From(7));
        assert_eq!(cursor.next_poll(started_at + Duration::from_secs(500)), Poll::Full);
    }
}
