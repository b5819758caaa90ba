//! Health of an endpoint: its last success and failure, and the time since which it fails.

use diesel::QueryableByName;
use diesel::sql_types::{Integer, Nullable, Text, Timestamptz};
use platform::Timestamp;

use crate::outcome::{Outcome, Signal};

/// The last results of an endpoint, as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, QueryableByName)]
pub(crate) struct EndpointHealth {
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(crate) last_success_at: Option<Timestamp>,
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) last_success_status: Option<i32>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(crate) last_failure_at: Option<Timestamp>,
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) last_failure_status: Option<i32>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) last_failure_outcome: Option<String>,
    /// Time of the first failure since the endpoint last responded as it should.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(crate) failing_since: Option<Timestamp>,
}

impl EndpointHealth {
    /// Applies a result that ended at this time. A response that rejects one message says that the
    /// endpoint works.
    pub(super) fn apply(&mut self, outcome: &Outcome, ended_at: Timestamp) {
        let status = outcome.status().map(i32::from);
        if matches!(outcome, Outcome::Delivered { .. }) {
            (self.last_success_at, self.last_success_status) = (Some(ended_at), status);
        } else {
            (self.last_failure_at, self.last_failure_status) = (Some(ended_at), status);
            self.last_failure_outcome = Some(outcome.name().to_owned());
        }
        match outcome.signal() {
            Signal::Grow | Signal::Hold => self.failing_since = None,
            Signal::Shrink => self.failing_since = self.failing_since.or(Some(ended_at)),
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
    fn an_endpoint_fails_since_its_first_failure_after_a_proper_response() {
        let mut health = EndpointHealth::default();
        let rejected = |status| Outcome::Rejected { status, retry_after: None };
        let mut failing_since = |outcome: Outcome, seconds| {
            health.apply(&outcome, at(seconds));
            health.failing_since
        };
        assert_eq!(failing_since(rejected(503), 1), Some(at(1)));
        assert_eq!(failing_since(Outcome::TimedOut, 2), Some(at(1)));
        assert_eq!(failing_since(rejected(422), 3), None);
        assert_eq!(failing_since(Outcome::TimedOut, 4), Some(at(4)));
        assert_eq!(failing_since(Outcome::Delivered { status: 202 }, 5), None);
        let expected = EndpointHealth {
            last_success_at: Some(at(5)),
            last_success_status: Some(202),
            last_failure_at: Some(at(4)),
            last_failure_status: None,
            last_failure_outcome: Some("timed_out".to_owned()),
            failing_since: None,
        };
        assert_eq!(health, expected);
    }
}
