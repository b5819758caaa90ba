//! A circuit breaker for each merchant, so that shoppers do not wait for a merchant that is down.
//!
//! Consecutive failures open the breaker. When the open time is over, one request goes through, and
//! its result closes the breaker or opens it again. A change of the merchant resets its breaker.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::access::MerchantId;
use domain::merchant::Merchant;
use tokio::time::Instant;

use crate::settings::Variants as Settings;

/// A canceled request counts as a failure if it took at least this long.
const SLOW: Duration = Duration::from_secs(1);

/// Reason that a request is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BreakerError {
    #[error("the last requests to the merchant failed; the circuit breaker is open")]
    Open,
    #[error("too many requests to the merchant are in flight")]
    Busy,
}

pub(super) struct Breakers {
    threshold: u32,
    open_for: Duration,
    max_concurrency: u32,
    all: Mutex<HashMap<MerchantId, Breaker>>,
}

#[derive(Debug, Default)]
struct Breaker {
    version: i64,
    failed: u32,
    in_flight: u32,
    /// Set while the breaker is open. After this time one request at a time goes through.
    open_until: Option<Instant>,
}

/// Permission to send one request. Dropping it unsettled means that the request was canceled.
pub(super) struct Permit<'a> {
    breakers: &'a Breakers,
    merchant: MerchantId,
    version: i64,
    since: Instant,
    settled: bool,
}

impl Breakers {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            threshold: settings.breaker_threshold.get(),
            open_for: settings.breaker_open_for,
            max_concurrency: settings.max_concurrency,
            all: Mutex::default(),
        }
    }

    pub(super) fn acquire(
        &self,
        merchant: &Merchant,
        now: Instant,
    ) -> Result<Permit<'_>, BreakerError> {
        let Merchant { identifier, version, .. } = merchant;
        let mut all = self.lock();
        let breaker = all.entry(identifier.clone()).or_default();
        if breaker.version != *version {
            *breaker = Breaker { version: *version, ..Breaker::default() };
        }
        match breaker.open_until {
            Some(until) if now < until || breaker.in_flight > 0 => return Err(BreakerError::Open),
            None if breaker.in_flight >= self.max_concurrency => return Err(BreakerError::Busy),
            _ => {}
        }
        breaker.in_flight += 1;
        let merchant = identifier.clone();
        let version = *version;
        Ok(Permit { breakers: self, merchant, version, since: now, settled: false })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MerchantId, Breaker>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, permit: &Permit<'_>, is_success: Option<bool>, now: Instant) {
        let mut all = self.lock();
        let current = all.get_mut(&permit.merchant);
        let Some(breaker) = current.filter(|breaker| breaker.version == permit.version) else {
            return;
        };
        breaker.in_flight = breaker.in_flight.saturating_sub(1);
        match is_success {
            Some(true) => {
                if breaker.open_until.is_some() {
                    tracing::info!(merchant = %permit.merchant, "circuit breaker of merchant {} closed", permit.merchant);
                }
                (breaker.failed, breaker.open_until) = (0, None);
            }
            Some(false) => {
                breaker.failed = breaker.failed.saturating_add(1);
                if breaker.failed >= self.threshold {
                    if breaker.open_until.is_none() {
                        tracing::warn!(merchant = %permit.merchant, "circuit breaker of merchant {} opened", permit.merchant);
                    }
                    breaker.open_until = Some(now + self.open_for);
                }
            }
            None => {}
        }
    }
}

impl Permit<'_> {
    /// Records whether the request succeeded.
    pub(super) fn settle(mut self, is_success: bool, now: Instant) {
        self.settled = true;
        self.breakers.release(&self, Some(is_success), now);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if !self.settled {
            let now = Instant::now();
            let failed = now.saturating_duration_since(self.since) >= SLOW;
            self.breakers.release(self, failed.then_some(false), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::merchant::Settings as MerchantSettings;

    use super::*;

    fn breakers() -> Breakers {
        let open_for = Duration::from_secs(10);
        Breakers { threshold: 3, open_for, max_concurrency: 4, all: Mutex::default() }
    }

    fn merchant(name: &str) -> Merchant {
        Merchant::new(name.parse().unwrap(), MerchantSettings::new(name))
    }

    #[track_caller]
    fn fail(breakers: &Breakers, merchant: &Merchant, now: Instant, times: u32) {
        for _ in 0..times {
            breakers.acquire(merchant, now).unwrap().settle(false, now);
        }
    }

    #[test]
    fn consecutive_failures_open_the_breaker() {
        let breakers = breakers();
        let acme = merchant("acme");
        let start = Instant::now();
        fail(&breakers, &acme, start, 2);
        breakers.acquire(&acme, start).unwrap().settle(true, start);
        fail(&breakers, &acme, start, 3);
        assert_eq!(breakers.acquire(&acme, start).err(), Some(BreakerError::Open));
        assert!(breakers.acquire(&merchant("rival"), start).is_ok());
    }

    #[test]
    fn after_the_open_time_one_request_decides() {
        let breakers = breakers();
        let acme = merchant("acme");
        let start = Instant::now();
        fail(&breakers, &acme, start, 3);
        let later = start + Duration::from_secs(10);
        let probe = breakers.acquire(&acme, later).unwrap();
        assert_eq!(breakers.acquire(&acme, later).err(), Some(BreakerError::Open));
        probe.settle(false, later);
        assert_eq!(breakers.acquire(&acme, later).err(), Some(BreakerError::Open));
        let later = later + Duration::from_secs(10);
        breakers.acquire(&acme, later).unwrap().settle(true, later);
        fail(&breakers, &acme, later, 2);
        assert!(breakers.acquire(&acme, later).is_ok());
    }

    #[test]
    fn a_canceled_request_releases_its_permit() {
        let breakers = breakers();
        let acme = merchant("acme");
        let start = Instant::now();
        fail(&breakers, &acme, start, 3);
        let later = start + Duration::from_secs(10);
        drop(breakers.acquire(&acme, later).unwrap());
        assert!(breakers.acquire(&acme, later).is_ok());
    }

    #[test]
    fn concurrency_is_limited() {
        let breakers = breakers();
        let acme = merchant("acme");
        let start = Instant::now();
        let all: Vec<_> = (0..4).map(|_| breakers.acquire(&acme, start).unwrap()).collect();
        assert_eq!(breakers.acquire(&acme, start).err(), Some(BreakerError::Busy));
        drop(all);
        assert!(breakers.acquire(&acme, start).is_ok());
    }

    #[test]
    fn a_change_of_the_merchant_resets_its_breaker() {
        let breakers = breakers();
        let mut acme = merchant("acme");
        let start = Instant::now();
        let old = breakers.acquire(&acme, start).unwrap();
        fail(&breakers, &acme, start, 3);
        acme.version += 1;
        let permit = breakers.acquire(&acme, start).unwrap();
        old.settle(false, start);
        permit.settle(true, start);
        assert!(breakers.acquire(&acme, start).is_ok());
    }
}
