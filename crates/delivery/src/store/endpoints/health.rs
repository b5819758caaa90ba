//! Health of an endpoint: its last success and failure, and the time since which it fails.

use platform::Timestamp;

use crate::outcome::{Outcome, Signal};

platform::rows! {
    /// The last results of an endpoint, as stored.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub(crate) struct EndpointHealth {
        pub(crate) last_success_at: Option<Timestamp>,
        pub(crate) last_success_status: Option<i32>,
        pub(crate) last_failure_at: Option<Timestamp>,
        pub(crate) last_failure_status: Option<i32>,
        pub(crate) last_failure_outcome: Option<String>,
        /// Time since which the endpoint fails; null if it does not fail.
        pub(crate) failing_since: Option<Timestamp>,
    }
}

impl EndpointHealth {
    /// Applies a result that ended at this time. A response that rejects one message says nothing about the
    /// endpoint, unless the message is given up or the endpoint has not accepted any. Only a success ends
    /// the failure.
    pub(super) fn apply(&mut self, outcome: &Outcome, is_dead: bool, ended_at: Timestamp) {
        let status = outcome.status().map(i32::from);
        if matches!(outcome, Outcome::Delivered { .. } | Outcome::LabelRefused) {
            (self.last_success_at, self.last_success_status) = (Some(ended_at), status);
        } else {
            (self.last_failure_at, self.last_failure_status) = (Some(ended_at), status);
            self.last_failure_outcome = Some(outcome.name().to_owned());
        }
        match outcome.signal() {
            Signal::Grow => self.failing_since = None,
            Signal::Hold if !is_dead && self.last_success_at.is_some() => {}
            Signal::Hold | Signal::Shrink => {
                self.failing_since = self.failing_since.or(Some(ended_at));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    #[test]
    fn an_endpoint_fails_since_its_first_failure_after_a_success() {
        let mut health = EndpointHealth::default();
        let rejected = |status| Outcome::Rejected { status, retry_after: None };
        let mut failing_since = |outcome: Outcome, is_dead, seconds| {
            health.apply(&outcome, is_dead, at(seconds));
            health.failing_since
        };
        assert_eq!(failing_since(rejected(422), false, 1), Some(at(1)), "no attempt succeeded");
        assert_eq!(failing_since(Outcome::Delivered { status: 202 }, false, 2), None);
        assert_eq!(failing_since(rejected(422), false, 3), None, "other messages may be accepted");
        assert_eq!(failing_since(rejected(422), true, 4), Some(at(4)), "a message was given up");
        assert_eq!(failing_since(rejected(422), false, 5), Some(at(4)));
        assert_eq!(failing_since(Outcome::Delivered { status: 202 }, false, 5), None);
        assert_eq!(failing_since(rejected(503), false, 6), Some(at(6)));
        assert_eq!(failing_since(Outcome::TimedOut, false, 7), Some(at(6)));
        assert_eq!(failing_since(Outcome::Delivered { status: 202 }, false, 8), None);
        let expected = EndpointHealth {
            last_success_at: Some(at(8)),
            last_success_status: Some(202),
            last_failure_at: Some(at(7)),
            last_failure_status: None,
            last_failure_outcome: Some("timed_out".to_owned()),
            failing_since: None,
        };
        assert_eq!(health, expected);
    }
}
