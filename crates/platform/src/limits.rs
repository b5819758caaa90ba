//! Rate limits per key (an address, a client), counted in this process.
//!
//! See docs/decisions/rate-limits.md.

use std::{
    collections::VecDeque,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::Duration,
};

use chrono::{DateTime, TimeDelta};
use moka::sync::Cache;
use serde::Deserialize;

use crate::{Clock, ErrorKind, Failure, Timestamp};

const MINUTE: i64 = 60;
/// Maximum number of tracked keys. The least recently used keys are evicted first.
const MAX_KEYS: u64 = 100_000;
/// Keys without requests for this long are evicted; their requests no longer count.
const IDLE: Duration = Duration::from_secs(120);

/// `[limits]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub requests_per_minute: NonZeroU32,
}

/// The requests of each client address to this process.
pub struct PerAddress {
    counted: PerMinute<IpAddr>,
    clock: Clock,
}

/// The address has no requests left; the time until it has one again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests from this address within a minute")]
pub struct TooMany(Duration);

impl Failure for TooMany {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Limited
    }

    fn retry_after(&self) -> Option<Duration> {
        Some(self.0)
    }
}

impl PerAddress {
    pub(crate) fn new(settings: Settings, clock: Clock) -> Self {
        Self { counted: PerMinute::new(settings.requests_per_minute), clock }
    }

    pub(crate) fn count(&self, address: IpAddr) -> Result<(), TooMany> {
        self.counted.take(&network(address), self.clock.now()).map_err(TooMany)
    }
}

/// The network that is counted as one client. An IPv6 client usually has a /64 network, so the whole
/// network counts as one.
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// A limit for each key in any period of 60 seconds.
pub struct PerMinute<K: Hash + Eq + Clone + Send + Sync + 'static> {
    limit: u32,
    taken: Cache<K, Arc<Mutex<Taken>>>,
}

/// The number of requests in each second that still counts, oldest first.
#[derive(Default)]
struct Taken(VecDeque<(i64, u32)>);

impl<K: Hash + Eq + Clone + Send + Sync + 'static> PerMinute<K> {
    pub fn new(limit: NonZeroU32) -> Self {
        let taken = Cache::builder()
            .max_capacity(MAX_KEYS)
            .eviction_policy(moka::policy::EvictionPolicy::lru())
            .time_to_idle(IDLE)
            .build();
        Self { limit: limit.get(), taken }
    }

    /// Counts one request. Over the limit it returns the time until the next one is allowed.
    pub fn take(&self, key: &K, now: Timestamp) -> Result<(), Duration> {
        let taken = self.taken.get_with_by_ref(key, Arc::default);
        taken.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take(self.limit, now)
    }

    /// The number of tracked keys.
    pub fn len(&self) -> u64 {
        self.taken.run_pending_tasks();
        self.taken.entry_count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Taken {
    fn take(&mut self, limit: u32, now: Timestamp) -> Result<(), Duration> {
        let second = now.timestamp();
        // A second counts until its end is a minute ago. A second in the future was counted before the
        // clock was set back.
        self.0.retain(|(taken_in, _)| (second - MINUTE..=second).contains(taken_in));
        if self.0.iter().map(|(_, count)| count).sum::<u32>() >= limit {
            let oldest = self.0.front().map_or(second, |(taken_in, _)| *taken_in);
            let free_at = DateTime::UNIX_EPOCH + TimeDelta::seconds(oldest + MINUTE + 1);
            return Err((free_at - now).to_std().unwrap_or_default());
        }
        match self.0.back_mut() {
            Some((taken_in, count)) if *taken_in == second => *count += 1,
            _ => self.0.push_back((second, 1)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> Timestamp {
        DateTime::UNIX_EPOCH + TimeDelta::milliseconds(milliseconds)
    }

    fn limit(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).unwrap()
    }

    #[test]
    fn each_key_has_its_own_allowance() {
        let limits = PerMinute::new(limit(2));
        assert_eq!(limits.take(&"a", at(0)), Ok(()));
        assert_eq!(limits.take(&"a", at(10)), Ok(()));
        assert_eq!(limits.take(&"a", at(20)), Err(Duration::from_millis(60_980)));
        assert_eq!(limits.take(&"b", at(20)), Ok(()));
    }

    #[test]
    fn no_minute_has_more_than_the_limit() {
        let limits = PerMinute::new(limit(60));
        // One a second is the limit, two are not.
        let admitted: Vec<_> =
            (0..600).map(|n| n * 500).filter(|ms| limits.take(&"a", at(*ms)).is_ok()).collect();
        for begin in &admitted {
            let minute = *begin..begin + 60_000;
            let count = admitted.iter().filter(|ms| minute.contains(ms)).count();
            assert!(count <= 60, "{count} from {begin}");
        }
        assert!(admitted.len() > 4 * 60, "{}", admitted.len());
    }

    #[test]
    fn a_client_that_waits_for_retry_after_is_admitted() {
        let limits = PerMinute::new(limit(3));
        for milliseconds in [0, 30_000, 59_999] {
            assert_eq!(limits.take(&"a", at(milliseconds)), Ok(()));
        }
        let pause = limits.take(&"a", at(60_100)).unwrap_err();
        assert_eq!(pause, Duration::from_millis(900));
        assert!(limits.take(&"a", at(60_999)).is_err());
        assert_eq!(limits.take(&"a", at(61_000)), Ok(()));
        assert!(limits.take(&"a", at(61_001)).is_err());
    }

    #[test]
    fn a_clock_that_is_set_back_locks_no_client_out() {
        let limits = PerMinute::new(limit(1));
        assert_eq!(limits.take(&"a", at(3_600_000)), Ok(()));
        assert_eq!(limits.take(&"a", at(0)), Ok(()));
        assert!(limits.take(&"a", at(1)).is_err());
    }

    #[test]
    fn the_number_of_tracked_keys_is_limited() {
        let limits = PerMinute::new(limit(1));
        for key in 0..MAX_KEYS + 1000 {
            assert_eq!(limits.take(&key, at(0)), Ok(()));
        }
        assert_eq!(limits.len(), MAX_KEYS);
    }

    #[test]
    fn an_ipv6_network_is_one_client() {
        let settings = Settings { requests_per_minute: NonZeroU32::MIN };
        let counted = PerAddress::new(settings, Clock::from_fn(|| at(0)));
        let count = |address: &str| counted.count(address.parse().unwrap());
        assert_eq!(count("2001:db8:0:1::1"), Ok(()));
        assert!(count("2001:db8:0:1:ffff::2").is_err());
        assert_eq!(count("2001:db8:0:2::1"), Ok(()));
        assert_eq!(count("192.0.2.1"), Ok(()));
        assert_eq!(count("192.0.2.2"), Ok(()));
    }
}
