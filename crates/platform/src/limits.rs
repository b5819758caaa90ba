//! Rate limits per key (an address, a client), counted in this process.

use std::{
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use governor::{
    Quota, RateLimiter, clock::Clock as _, clock::DefaultClock, state::keyed::DashMapStateStore,
};
use serde::Deserialize;

use crate::{Failure, Kind, Tasks};

/// After so long every key is back at its full allowance.
const MINUTE: Duration = Duration::from_secs(60);

/// `[limits]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub requests_per_minute: NonZeroU32,
}

/// The requests of each client address to this process.
pub struct PerAddress(PerMinute<IpAddr>);

/// Why a request did not come in: try again after so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests from this address")]
pub struct TooMany(Duration);

impl Failure for TooMany {
    fn kind(&self) -> Kind {
        Kind::Limited
    }

    fn retry_after(&self) -> Option<Duration> {
        Some(self.0)
    }
}

impl PerAddress {
    pub(crate) fn start(settings: Settings, tasks: &Tasks) -> Arc<Self> {
        let counted = Arc::new(Self(PerMinute::new(settings.requests_per_minute)));
        let same = counted.clone();
        tasks.every("limits", MINUTE, move || {
            same.0.forget_idle();
            std::future::ready(())
        });
        counted
    }

    pub(crate) fn count(&self, address: IpAddr) -> Result<(), TooMany> {
        self.0.take(&network(address)).map_err(TooMany)
    }
}

/// What is counted as one client. Whoever has an IPv6 address has 2^64 of them, so all of those are
/// one.
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

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

    #[test]
    fn an_ipv6_network_is_one_client() {
        let counted = PerAddress(PerMinute::new(NonZeroU32::MIN));
        let count = |address: &str| counted.count(address.parse().unwrap());
        assert_eq!(count("2001:db8:0:1::1"), Ok(()));
        assert!(count("2001:db8:0:1:ffff::2").is_err());
        assert_eq!(count("2001:db8:0:2::1"), Ok(()));
        assert_eq!(count("192.0.2.1"), Ok(()));
        assert_eq!(count("192.0.2.2"), Ok(()));
    }
}
