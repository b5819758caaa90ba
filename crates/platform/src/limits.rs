//! Rate limits per key (an address, a client), counted in this process.

use std::{hash::Hash, num::NonZeroU32, time::Duration};

use governor::{
    Quota, RateLimiter, clock::Clock as _, clock::DefaultClock, state::keyed::DashMapStateStore,
};

/// So many a minute for each key, with bursts up to the whole minute's worth.
pub struct PerMinute<K: Hash + Eq + Clone> {
    limiter: RateLimiter<K, DashMapStateStore<K>, DefaultClock>,
    clock: DefaultClock,
}

impl<K: Hash + Eq + Clone> PerMinute<K> {
    pub fn new(limit: NonZeroU32) -> Self {
        Self {
            limiter: RateLimiter::dashmap(Quota::per_minute(limit)),
            clock: DefaultClock::default(),
        }
    }

    /// Takes one; when there is none left, says how long until there is.
    pub fn take(&self, key: &K) -> Result<(), Duration> {
        self.limiter.check_key(key).map_err(|refused| refused.wait_time_from(self.clock.now()))
    }

    /// Forgets the keys that are back at their full allowance; call it now and then.
    pub fn forget_idle(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }

    /// How many keys are remembered.
    pub fn len(&self) -> usize {
        self.limiter.len()
    }

    pub fn is_empty(&self) -> bool {
        self.limiter.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_allowance() {
        let limits = PerMinute::new(NonZeroU32::new(2).unwrap());
        assert_eq!(limits.take(&"a"), Ok(()));
        assert_eq!(limits.take(&"a"), Ok(()));
        let pause = limits.take(&"a").unwrap_err();
        assert!(pause > Duration::from_secs(20) && pause <= Duration::from_secs(30), "{pause:?}");
        assert_eq!(limits.take(&"b"), Ok(()));
    }
}
