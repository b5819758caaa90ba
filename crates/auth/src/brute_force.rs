//! Protection against guessing client secrets, passwords and codes.
//!
//! An address with too many failed authentications is locked out of the account that it tried, and of no
//! other: people and clients share addresses. An account is a client id or the e-mail address of a person.
//! IPv6 addresses count by network. Failed sign-ins of a person also count over all addresses: after some
//! failures in a row, each further one doubles the time until the next attempt.

use std::{net::IpAddr, time::Duration};

use moka::sync::Cache;
use platform::{
    Clock, Timestamp,
    limits::{PerMinute, network},
};
use tokio::time::Instant;

use crate::{error::Error, settings};

const MAX_LOCKOUT: Duration = Duration::from_secs(60);
const MAX_LOCKOUTS: u64 = 100_000;
/// Longest wait between two attempts to sign in as a person.
const MAX_WAIT: Duration = Duration::from_secs(15 * 60);
/// Failures of a person are cleared after this time without another one.
const MEMORY: Duration = Duration::from_secs(3600);

pub(crate) struct BruteForceGuard {
    account_failures: PerMinute<(IpAddr, String)>,
    /// Codes of a person whose password was right, from all addresses. A code has only six digits.
    code_attempts: PerMinute<String>,
    /// End of each lockout.
    lockouts: Cache<(IpAddr, String), Instant>,
    /// Failed sign-ins in a row from all addresses, by e-mail address, and the time of the next attempt.
    /// Addresses of nobody count too, so that the wait does not reveal which people exist.
    person_failures: Cache<String, (u32, Timestamp)>,
    free_failures: u32,
    failure_latency_step: Duration,
    clock: Clock,
}

impl BruteForceGuard {
    pub(crate) fn new(settings: &settings::BruteForce, clock: Clock) -> Self {
        Self {
            account_failures: PerMinute::new(settings.account_failures_per_minute),
            code_attempts: PerMinute::new(settings.account_failures_per_minute),
            lockouts: Cache::builder().max_capacity(MAX_LOCKOUTS).time_to_live(MAX_LOCKOUT).build(),
            person_failures: Cache::builder()
                .max_capacity(MAX_LOCKOUTS)
                .time_to_idle(MEMORY)
                .build(),
            free_failures: settings.account_failures_per_minute.get(),
            failure_latency_step: settings.failure_latency_step,
            clock,
        }
    }

    /// The remaining lockout of an address. `account` is `None` if the presented id is invalid.
    pub(crate) fn lockout(&self, address: IpAddr, account: Option<&str>) -> Option<Duration> {
        let ends_at = self.lockouts.get(&(network(address), account?.to_owned()))?;
        let remaining = ends_at.saturating_duration_since(Instant::now());
        (!remaining.is_zero()).then_some(remaining)
    }

    /// Rejects an address that is locked out.
    pub(crate) fn check(&self, address: IpAddr, account: Option<&str>) -> Result<(), Error> {
        self.lockout(address, account).map_or(Ok(()), |remaining| Err(Error::LockedOut(remaining)))
    }

    /// The time that a person still has to wait for the next attempt, because the last attempts failed.
    pub(crate) fn wait(&self, person: &str) -> Option<Duration> {
        let (_, next) = self.person_failures.get(person)?;
        (next - self.clock.now()).to_std().ok().filter(|wait| !wait.is_zero())
    }

    /// Counts a failed sign-in of a person.
    pub(crate) fn record_person_failure(&self, person: &str) {
        let now = self.clock.now();
        self.person_failures.entry_by_ref(person).and_upsert_with(|entry| {
            let count = entry.map_or(1, |entry| entry.into_value().0.saturating_add(1));
            (count, now + wait_after(count.saturating_sub(self.free_failures)))
        });
    }

    /// Clears the failures of a person who signed in.
    pub(crate) fn clear_failures(&self, person: &str) {
        self.person_failures.invalidate(person);
    }

    /// Counts a failed authentication and waits until the end of its time step, so that the response time
    /// does not reveal how far the check went.
    pub(crate) async fn refuse(&self, address: IpAddr, account: Option<&str>, started_at: Instant) {
        self.record_failure(address, account);
        let time = rounded_up(started_at.elapsed(), self.failure_latency_step);
        tokio::time::sleep_until(started_at + time).await;
    }

    /// Counts a failed authentication. The counters of all accounts are bounded by [`PerMinute`].
    fn record_failure(&self, address: IpAddr, account: Option<&str>) {
        let Some(account) = account else { return };
        let key = (network(address), account.to_owned());
        if let Err(wait) = self.account_failures.take(&key, self.clock.now()) {
            self.lockouts.insert(key, Instant::now() + wait.min(MAX_LOCKOUT));
        }
    }

    /// Counts a code that a person entered after the right password. `false` means that the person tried
    /// too many codes in a minute.
    pub(crate) fn allows_code(&self, person: &str) -> bool {
        self.code_attempts.take(&person.to_owned(), self.clock.now()).is_ok()
    }
}

/// The wait after a number of failures beyond the free ones: 1 s, 2 s, 4 s and so on.
fn wait_after(failures: u32) -> Duration {
    match failures.checked_sub(1) {
        Some(doublings) => Duration::from_secs(1_u64 << doublings.min(20)).min(MAX_WAIT),
        None => Duration::ZERO,
    }
}

/// The first multiple of `step` after `elapsed`.
fn rounded_up(elapsed: Duration, step: Duration) -> Duration {
    match elapsed.as_nanos().checked_div(step.as_nanos()) {
        Some(steps) => {
            step.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX).saturating_add(1))
        }
        None => elapsed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_further_failure_of_a_person_doubles_the_wait() {
        let waits = [0, 1, 2, 3, 10, 11, u32::MAX].map(|failures| wait_after(failures).as_secs());
        assert_eq!(waits, [0, 1, 2, 4, 512, 900, 900]);
    }

    #[test]
    fn refusals_end_at_a_time_step() {
        let milliseconds = Duration::from_millis;
        for (elapsed, end) in [(0, 50), (1, 50), (49, 50), (50, 100), (130, 150)] {
            assert_eq!(rounded_up(milliseconds(elapsed), milliseconds(50)), milliseconds(end));
        }
        assert_eq!(rounded_up(milliseconds(7), Duration::ZERO), milliseconds(7));
    }

    fn guard(per_account: u32) -> BruteForceGuard {
        let settings = settings::BruteForce {
            account_failures_per_minute: std::num::NonZeroU32::new(per_account).unwrap(),
            failure_latency_step: Duration::ZERO,
        };
        BruteForceGuard::new(&settings, Clock::system())
    }

    #[test]
    fn failures_with_many_accounts_lock_an_address_out_of_none_of_them() {
        let guard = guard(3);
        let address = IpAddr::from([192, 0, 2, 1]);
        for guess in 0..1000 {
            guard.record_failure(address, Some(&format!("client-{guess}")));
        }
        assert_eq!(guard.lockout(address, Some("client-1")), None);
        for _ in 0..4 {
            guard.record_failure(address, Some("client"));
        }
        assert!(guard.lockout(address, Some("client")).is_some());
        assert_eq!(guard.lockout(address, Some("other")), None);
        guard.record_failure(address, None);
        assert_eq!(guard.lockout(address, None), None);
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let guard = guard(2);
        for host in 1..=3 {
            guard.record_failure(format!("2001:db8:0:1::{host}").parse().unwrap(), Some("client"));
        }
        assert!(guard.lockout("2001:db8:0:1::9".parse().unwrap(), Some("client")).is_some());
        assert!(guard.lockout("2001:db8:0:2::1".parse().unwrap(), Some("client")).is_none());
    }
}
