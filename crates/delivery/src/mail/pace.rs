//! Limits the mails of a second.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// The mails that were sent within the present second.
#[derive(Debug)]
pub(super) struct Pace {
    max: u32,
    max_per_domain: u32,
    began_at: Instant,
    sent: u32,
    sent_to: HashMap<String, u32>,
}

impl Pace {
    pub(super) fn new(max: NonZeroU32, max_per_domain: NonZeroU32, now: Instant) -> Self {
        Self {
            max: max.get(),
            max_per_domain: max_per_domain.get(),
            began_at: now,
            sent: 0,
            sent_to: HashMap::new(),
        }
    }

    /// Counts a mail to a domain, unless that exceeds a limit.
    pub(super) fn try_send(&mut self, domain: &str, now: Instant) -> bool {
        if now.saturating_duration_since(self.began_at) >= SECOND {
            self.began_at = now;
            self.sent = 0;
            self.sent_to.clear();
        }
        let sent_to = self.sent_to.entry(domain.to_ascii_lowercase()).or_default();
        if self.sent >= self.max || *sent_to >= self.max_per_domain {
            return false;
        }
        self.sent += 1;
        *sent_to += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_a_limited_number_of_mails() {
        let limit = |number| NonZeroU32::new(number).unwrap();
        let start = Instant::now();
        let mut pace = Pace::new(limit(3), limit(2), start);
        let mut sent =
            |domain, millis| pace.try_send(domain, start + Duration::from_millis(millis));
        assert!(sent("a.example", 0) && sent("A.example", 10));
        assert!(!sent("a.example", 20), "two to this domain");
        assert!(sent("b.example", 30));
        assert!(!sent("c.example", 999), "three in all");
        assert!(sent("a.example", 1000) && sent("c.example", 1500));
    }
}
