//! Protection against guessing client secrets, passwords and codes.
//!
//! An address with too many failed authentications is locked out, first of the account that it tried,
//! then of all accounts. An account is a client id or the e-mail address of a person. IPv6 addresses
//! count by network.

use std::{net::IpAddr, time::Duration};

use moka::sync::Cache;
use platform::{
    Clock,
    limits::{PerMinute, network},
};
use tokio::time::Instant;

use crate::{error::Error, settings};

const MAX_LOCKOUT: Duration = Duration::from_secs(60);
const MAX_LOCKOUTS: u64 = 100_000;

pub(crate) struct BruteForceGuard {
    account_failures: PerMinute<(IpAddr, String)>,
    address_failures: PerMinute<IpAddr>,
    /// Codes of a person whose password was right, from all addresses. A code has only six digits.
    code_attempts: PerMinute<String>,
    /// End of each lockout, for one account or (with `None`) for all accounts.
    lockouts: Cache<(IpAddr, Option<String>), Instant>,
    min_failure_latency: Duration,
    clock: Clock,
}

impl BruteForceGuard {
    pub(crate) fn new(settings: &settings::BruteForce, clock: Clock) -> Self {
        Self {
            account_failures: PerMinute::new(settings.account_failures_per_minute),
            address_failures: PerMinute::new(settings.address_failures_per_minute),
            code_attempts: PerMinute::new(settings.account_failures_per_minute),
            lockouts: Cache::builder().max_capacity(MAX_LOCKOUTS).time_to_live(MAX_LOCKOUT).build(),
            min_failure_latency: settings.min_failure_latency,
            clock,
        }
    }

    /// The remaining lockout of an address. `account` is `None` if the presented id is invalid.
    pub(crate) fn lockout(&self, address: IpAddr, account: Option<&str>) -> Option<Duration> {
        let address = network(address);
        let keys = [(address, account.map(str::to_owned)), (address, None)];
        let ends_at = keys.iter().filter_map(|key| self.lockouts.get(key)).max()?;
        let remaining = ends_at.saturating_duration_since(Instant::now());
        (!remaining.is_zero()).then_some(remaining)
    }

    /// Rejects an address that is locked out.
    pub(crate) fn check(&self, address: IpAddr, account: Option<&str>) -> Result<(), Error> {
        self.lockout(address, account).map_or(Ok(()), |remaining| Err(Error::LockedOut(remaining)))
    }

    /// Counts a failed authentication and waits until it has taken the minimum time.
    pub(crate) async fn refuse(&self, address: IpAddr, account: Option<&str>, started_at: Instant) {
        self.record_failure(address, account);
        tokio::time::sleep_until(started_at + self.min_failure_latency).await;
    }

    /// Counts a failed authentication. The number of accounts counted for an address is bounded by
    /// the limit of the address.
    fn record_failure(&self, address: IpAddr, account: Option<&str>) {
        let address = network(address);
        let now = self.clock.now();
        let ends_at = |wait: Duration| Instant::now() + wait.min(MAX_LOCKOUT);
        if let Err(wait) = self.address_failures.take(&address, now) {
            self.lockouts.insert((address, None), ends_at(wait));
            return;
        }
        let Some(account) = account else { return };
        if let Err(wait) = self.account_failures.take(&(address, account.to_owned()), now) {
            self.lockouts.insert((address, Some(account.to_owned())), ends_at(wait));
        }
    }

    /// Counts a code that a person entered after the right password. `false` means that the person tried
    /// too many codes in a minute.
    pub(crate) fn allows_code(&self, person: &str) -> bool {
        self.code_attempts.take(&person.to_owned(), self.clock.now()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(per_account: u32, per_address: u32) -> BruteForceGuard {
        let limit = |number| std::num::NonZeroU32::new(number).unwrap();
        let settings = settings::BruteForce {
            account_failures_per_minute: limit(per_account),
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
        assert_eq!(guard.account_failures.len(), 5);
        guard.record_failure(IpAddr::from([192, 0, 2, 2]), None);
        assert_eq!((guard.account_failures.len(), guard.address_failures.len()), (5, 2));
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
