//! Where to look for the next events.
//!
//! What was published leaves dead entries at the low end of the index, and PostgreSQL cannot clear
//! them away while anybody has an old view of the database, as a backup does for as long as it runs.
//! A look from the very beginning would step over all of them, more and more of them each time. So
//! most looks begin where nothing was left a while ago. Numbers are drawn before their transaction
//! commits: now and then a look from the beginning finds those that came late.

use std::time::{Duration, Instant};

/// A transaction that left events has ended after so long, nearly always.
const SETTLED: Duration = Duration::from_secs(10);
/// A look from the beginning may take one part in so many of the time.
const SHARE: u32 = 20;
/// Who has not published yet and cannot look from the beginning begins so many numbers back.
const BACK: i64 = 1_000_000;

#[derive(Debug)]
pub(super) struct RelayCursor {
    /// Below this nothing is expected any more.
    floor: i64,
    /// What the floor will be, and since when nothing was left below it.
    next: (i64, Instant),
    /// When to look from the beginning again.
    whole_at: Instant,
}

impl RelayCursor {
    pub(super) fn new(now: Instant) -> Self {
        Self { floor: i64::MIN, next: (i64::MIN, now), whole_at: now }
    }

    /// The first number to look at.
    pub(super) fn begin(&self, now: Instant) -> i64 {
        if now >= self.whole_at { i64::MIN } else { self.floor }
    }

    /// A look that began there took so long, whether or not it found anything.
    pub(super) fn looked(&mut self, from: i64, took: Duration, now: Instant) {
        if from == i64::MIN {
            self.whole_at = now + SETTLED.max(took * SHARE);
        }
    }

    /// These are the first that are there.
    pub(super) fn found(&mut self, first: i64, now: Instant) {
        if first < self.floor {
            self.floor = first;
        }
        if first < self.next.0 {
            self.next = (first, now);
        }
    }

    /// A look from the beginning does not end in its time, and this is the newest number: what is
    /// far below it has to wait until one does.
    pub(super) fn give_up_beginning(&mut self, newest: i64) {
        self.floor = self.floor.max(newest.saturating_sub(BACK));
    }

    /// Everything that was found is gone, up to this one if there was any.
    pub(super) fn gone(&mut self, last: Option<i64>, now: Instant) {
        let (next, since) = self.next;
        if now.saturating_duration_since(since) >= SETTLED {
            self.floor = self.floor.max(next);
            self.next = (last.unwrap_or(next), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGINNING: i64 = i64::MIN;

    /// Looks, finds these and publishes them; where it began.
    fn look(cursor: &mut RelayCursor, now: Instant, found: &[i64]) -> i64 {
        let from = cursor.begin(now);
        cursor.looked(from, Duration::from_millis(1), now);
        if let [first, ..] = found {
            cursor.found(*first, now);
        }
        cursor.gone(found.last().copied(), now);
        from
    }

    #[test]
    fn looks_begin_where_nothing_was_left_a_while_ago() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut cursor = RelayCursor::new(start);
        assert_eq!(look(&mut cursor, at(0), &[1, 2]), BEGINNING);
        assert_eq!(look(&mut cursor, at(1), &[3, 4]), BEGINNING);
        assert_eq!(look(&mut cursor, at(10), &[5, 6]), BEGINNING);
        // Six is gone, but a number below it may have been drawn just before.
        assert_eq!(look(&mut cursor, at(11), &[7, 8]), BEGINNING);
        assert_eq!(look(&mut cursor, at(20), &[9]), BEGINNING);
        assert_eq!(look(&mut cursor, at(21), &[10]), 6);
        assert_eq!(look(&mut cursor, at(29), &[]), 6);
        assert_eq!(look(&mut cursor, at(30), &[]), BEGINNING);
    }

    #[test]
    fn nobody_steps_again_and_again_over_what_went_before_a_quiet_time() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut cursor = RelayCursor { floor: 5, next: (7, start), whole_at: at(100) };
        assert_eq!(look(&mut cursor, at(10), &[8, 9]), 5);
        assert_eq!(look(&mut cursor, at(11), &[]), 7);
        assert_eq!(look(&mut cursor, at(20), &[]), 7);
        assert_eq!(look(&mut cursor, at(21), &[]), 9);
    }

    #[test]
    fn who_cannot_begin_at_the_beginning_begins_somewhere() {
        let start = Instant::now();
        let mut cursor = RelayCursor::new(start);
        cursor.looked(BEGINNING, Duration::from_secs(5), start);
        cursor.give_up_beginning(8_000_000);
        assert_eq!(cursor.begin(start), 7_000_000);
        cursor.give_up_beginning(20);
        assert_eq!(cursor.begin(start), 7_000_000);
        assert_eq!(cursor.begin(start + Duration::from_secs(100)), BEGINNING);
    }

    #[test]
    fn what_comes_late_is_found_and_nothing_behind_it_waits() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut cursor = RelayCursor { floor: 900, next: (950, start), whole_at: at(5) };
        assert_eq!(look(&mut cursor, at(1), &[]), 900);
        // Also when the database is one of before, with lower numbers throughout.
        assert_eq!(look(&mut cursor, at(5), &[100, 101]), BEGINNING);
        assert_eq!(look(&mut cursor, at(6), &[102]), 100);
    }

    #[test]
    fn a_look_that_takes_long_is_rare() {
        let start = Instant::now();
        let mut cursor = RelayCursor { floor: 7, next: (8, start), whole_at: start };
        let from = cursor.begin(start);
        cursor.looked(from, Duration::from_secs(5), start);
        assert_eq!(cursor.begin(start + Duration::from_secs(99)), 7);
        assert_eq!(cursor.begin(start + Duration::from_secs(100)), BEGINNING);
    }
}
