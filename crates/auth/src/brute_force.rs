//! Guessing secrets is slow: an address that fails too often has to wait, for the client it tried
//! and then for all of them. Nobody else notices. Addresses count by their network.

use std::{net::IpAddr, time::Duration};

use moka::sync::Cache;
use platform::{
    Clock,
    limits::{PerMinute, network},
};
use tokio::time::Instant;

use crate::settings;

const LONGEST_WAIT: Duration = Duration::from_secs(60);
const REMEMBERED: u64 = 100_000;

pub(crate) struct BruteForce {
    per_client: PerMinute<(IpAddr, String)>,
    per_address: PerMinute<IpAddr>,
    waiting: Cache<(IpAddr, Option<String>), Instant>,
    clock: Clock,
    pub(crate) floor: Duration,
}

impl BruteForce {
    pub(crate) fn new(settings: &settings::BruteForce, clock: Clock) -> Self {
        Self {
            per_client: PerMinute::new(settings.per_client),
            per_address: PerMinute::new(settings.per_address),
            waiting: Cache::builder().max_capacity(REMEMBERED).time_to_live(LONGEST_WAIT).build(),
            clock,
            floor: settings.floor,
        }
    }

    /// How long this address still has to wait before it may try this client, if at all. `None` is
    /// an id that no client can have.
    pub(crate) fn wait(&self, address: IpAddr, client: Option<&str>) -> Option<Duration> {
        let address = network(address);
        let keys = [(address, client.map(str::to_owned)), (address, None)];
        let until = keys.iter().filter_map(|key| self.waiting.get(key)).max()?;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// This address failed with this client. Past its own limit no more clients are counted for it,
    /// so what it can make us remember is bounded.
    pub(crate) fn failed(&self, address: IpAddr, client: Option<&str>) {
        let address = network(address);
        let now = self.clock.now();
        let until = |wait: Duration| Instant::now() + wait.min(LONGEST_WAIT);
        if let Err(wait) = self.per_address.take(&address, now) {
            self.waiting.insert((address, None), until(wait));
            return;
        }
        let Some(client) = client else { return };
        if let Err(wait) = self.per_client.take(&(address, client.to_owned()), now) {
            self.waiting.insert((address, Some(client.to_owned())), until(wait));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(per_client: u32, per_address: u32) -> BruteForce {
        let limit = |number| std::num::NonZeroU32::new(number).unwrap();
        let settings = settings::BruteForce {
            per_client: limit(per_client),
            per_address: limit(per_address),
            floor: Duration::ZERO,
        };
        BruteForce::new(&settings, Clock::system())
    }

    #[test]
    fn what_an_address_can_make_us_remember_is_bounded() {
        let (guard, address) = (guard(3, 5), IpAddr::from([192, 0, 2, 1]));
        for guess in 0..1000 {
            guard.failed(address, Some(&format!("client-{guess}")));
        }
        assert_eq!(guard.per_client.len(), 5);
        guard.failed(IpAddr::from([192, 0, 2, 2]), None);
        assert_eq!((guard.per_client.len(), guard.per_address.len()), (5, 2));
    }

    #[test]
    fn an_ipv6_network_guesses_as_one() {
        let guard = guard(10, 2);
        for host in 1..=3 {
            guard.failed(format!("2001:db8:0:1::{host}").parse().unwrap(), Some("client"));
        }
        assert!(guard.wait("2001:db8:0:1::9".parse().unwrap(), Some("other")).is_some());
        assert!(guard.wait("2001:db8:0:2::1".parse().unwrap(), Some("client")).is_none());
    }
}
