//! The one place that asks what time it is.

use std::sync::Arc;

use chrono::{DateTime, SubsecRound, Utc};

/// A moment in UTC, to the microsecond: what PostgreSQL can hold.
pub type Timestamp = DateTime<Utc>;

/// Where a process takes its time from.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the edge where time comes in")]
        Self::from_fn(|| Utc::now().trunc_subsecs(6))
    }

    /// A clock that answers what `now` says; tests move it by hand.
    pub fn from_fn(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}
