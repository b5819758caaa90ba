//! The current time.

use std::sync::Arc;

use chrono::{DateTime, SubsecRound, Utc};

/// A time in UTC with microseconds, the precision of PostgreSQL.
pub type Timestamp = DateTime<Utc>;

/// The clock of a process.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the only caller of the system clock")]
        Self::from_fn(|| Utc::now().trunc_subsecs(6))
    }

    /// A clock that returns the result of `now`, for tests.
    pub fn from_fn(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}
