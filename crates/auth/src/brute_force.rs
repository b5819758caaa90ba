//! Protection against guessing client secrets.
//!
//! An address with too many failed authentications is locked out, first of the client that it tried,
//! then of all clients. IPv6 addresses count by network.

use std::{net::IpAddr, time::Duration};

use moka::sync::Cache;
use platform::{
    Clock,
    limits::{PerMinute, network},
};
use tokio::time::Instant;

use crate::settings;

const MAX_LOCKOUT: Duration = Duration::from_secs(60);
const MAX_LOCKOUTS: u64 = 100_000;

pub(crate) struct BruteForceGuard {
    client_failures: PerMinute<(IpAddr, String)>,
    address_failures: PerMinute<IpAddr>,
    /// End of each lockout, for one client or (with `None`) for all clients.
    lockouts: Cache<(IpAddr, Option<String>), Instant>,
    clock: Clock,
}

impl BruteForceGuard {
    pub(crate) fn new(settings: &settings::BruteForce, clock: Clock) -> Self {
        Self {
            client_failures: PerMinute::new(settings.client_failures_per_minute),
            address_failures: PerMinute::new(settings.address_failures_per_minute),
            lockouts: Cache::builder().max_capacity(MAX_LOCKOUTS).time_to_live(MAX_LOCKOUT).build(),
            clock,
        }
    }

    /// The remaining lockout of an address. `client` is `None` if the presented id is invalid.
    pub(crate) fn lockout(&self, address: IpAddr, client: Option<&str>) -> Option<Duration> {
        let address = network(address);
        let keys = [(address, client.map(str::to_owned)), (address, None)];
        let ends_at = keys.iter().filter_map(|key| self.lockouts.get(key)).max()?;
        let remaining = ends_at.saturating_duration_since(Instant::now());
        (!remaining.is_zero()).then_some(remaining)
    }

    /// Counts a failed authentication. The number of clients counted for an address is bounded by
    /// the limit of the address.
    pub(crate) fn record_failure(&self, address: IpAddr, client: Option<&str>) {
        let address = network(address);
        let now = self.clock.now();
        let ends_at = |wait: Duration| Instant::now() + wait.min(MAX_LOCKOUT);
        if let Err(wait) = self.address_failures.take(&address, now) {
            self.lockouts.insert((address, None), ends_at(wait));
            return;
        }
        let Some(client) = client else { return };
        if let Err(wait) = self.client_failures.take(&(address, client.to_owned()), now) {
            self.lockouts.insert((address, Some(client.to_owned())), ends_at(wait));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(per_client: u32, per_address: u32) -> BruteForceGuard {
        let limit = |number| std::num::NonZeroU32::new(number).unwrap();
        let settings = settings::BruteForce {
            client_failures_per_minute: limit(per_client),
            address_failures_per_minute: limit(per_address),
            min_failure_latency: Duration::ZERO,
        };
        BruteForceGuard::new(&settings, Clock::system())
    }

    #[test]
    fn the_counters_of_an_address_are_bounded() {
        let (guard, address) = (guard(3, 5), IpAddr::from([192, 0, 2, 1]));
        for guess in 0..1000 {
            guard.record_failure(address, Some(&format!("client-{guess}")));
        }
        assert_eq!(guard.client_failures.len(), 5);
        guard.record_failure(IpAddr::from([192, 0, 2, 2]), None);
        assert_eq!((guard.client_failures.len(), guard.address_failures.len()), (5, 2));
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let guard = guard(10, 2);
        for host in 1..=3 {
            guard.record_failure(format!("2001:db8:0:1::{host}").parse().unwrap(), Some("client"));
        }
        assert!(guard.lockout("2001:db8:0:1::9".parse().unwrap(), Some("other")).is_some());
        assert!(guard.lockout("2001:db8:0:2::1".parse().unwrap(), Some("client")).is_none());
    }
}
