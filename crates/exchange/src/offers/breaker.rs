//! Leaves a merchant alone that does not answer, so that shoppers do not wait for it.
//!
//! After so many failures in a row the merchant rests. When the rest is over one question goes
//! through; its answer decides whether the others may follow. A merchant that changed is another
//! merchant.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::access::MerchantId;
use domain::merchant::Merchant;
use tokio::time::Instant;

use crate::settings::Variants as Settings;

/// A question that was given up by whoever asked it counts as failed when it took this long.
const LONG: Duration = Duration::from_secs(1);

/// Why a question is not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("the merchant failed too often and is asked again in a while")]
    Resting,
    #[error("too many questions to the merchant are under way")]
    Busy,
}

pub(super) struct Breakers {
    failures: u32,
    pause: Duration,
    most_at_once: u32,
    all: Mutex<HashMap<MerchantId, Breaker>>,
}

#[derive(Debug, Default)]
struct Breaker {
    version: i64,
    failed: u32,
    under_way: u32,
    /// Set while it rests; afterwards one question at a time goes through.
    rests_until: Option<Instant>,
}

/// A question that may be asked. It must be settled; one that is dropped was given up.
pub(super) struct Passage<'a> {
    breakers: &'a Breakers,
    merchant: MerchantId,
    version: i64,
    since: Instant,
    settled: bool,
}

impl Breakers {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            failures: settings.failures.get(),
            pause: settings.pause,
            most_at_once: settings.most_at_once,
            all: Mutex::default(),
        }
    }

    pub(super) fn enter(&self, merchant: &Merchant, now: Instant) -> Result<Passage<'_>, Refused> {
        let Merchant { identifier, version, .. } = merchant;
        let mut all = self.lock();
        let breaker = all.entry(identifier.clone()).or_default();
        if breaker.version != *version {
            *breaker = Breaker { version: *version, ..Breaker::default() };
        }
        match breaker.rests_until {
            Some(until) if now < until || breaker.under_way > 0 => return Err(Refused::Resting),
            None if breaker.under_way >= self.most_at_once => return Err(Refused::Busy),
            _ => {}
        }
        breaker.under_way += 1;
        let (merchant, version) = (identifier.clone(), *version);
        Ok(Passage { breakers: self, merchant, version, since: now, settled: false })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MerchantId, Breaker>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, passage: &Passage<'_>, well: Option<bool>, now: Instant) {
        let mut all = self.lock();
        let known = all.get_mut(&passage.merchant);
        let Some(breaker) = known.filter(|breaker| breaker.version == passage.version) else {
            return;
        };
        breaker.under_way = breaker.under_way.saturating_sub(1);
        match well {
            Some(true) => {
                if breaker.rests_until.is_some() {
                    tracing::info!(merchant.id = %passage.merchant, "merchant {} answers again", passage.merchant);
                }
                (breaker.failed, breaker.rests_until) = (0, None);
            }
            Some(false) => {
                breaker.failed = breaker.failed.saturating_add(1);
                if breaker.failed >= self.failures {
                    if breaker.rests_until.is_none() {
                        tracing::warn!(merchant.id = %passage.merchant, "merchant {} does not answer and is left alone", passage.merchant);
                    }
                    breaker.rests_until = Some(now + self.pause);
                }
            }
            None => {}
        }
    }
}

impl Passage<'_> {
    /// What came of the question: whether the merchant's side works.
    pub(super) fn settle(mut self, well: bool, now: Instant) {
        self.settled = true;
        self.breakers.leave(&self, Some(well), now);
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if !self.settled {
            let now = Instant::now();
            let failed = now.saturating_duration_since(self.since) >= LONG;
            self.breakers.leave(self, failed.then_some(false), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::merchant::Settings as MerchantSettings;

    use super::*;

    fn breakers() -> Breakers {
        let pause = Duration::from_secs(10);
        Breakers { failures: 3, pause, most_at_once: 4, all: Mutex::default() }
    }

    fn merchant(name: &str) -> Merchant {
        Merchant::new(name.parse().unwrap(), MerchantSettings::new(name))
    }

    #[track_caller]
    fn fail(breakers: &Breakers, merchant: &Merchant, now: Instant, times: u32) {
        for _ in 0..times {
            breakers.enter(merchant, now).unwrap().settle(false, now);
        }
    }

    #[test]
    fn a_merchant_that_keeps_failing_rests() {
        let (breakers, acme, start) = (breakers(), merchant("acme"), Instant::now());
        fail(&breakers, &acme, start, 2);
        breakers.enter(&acme, start).unwrap().settle(true, start);
        fail(&breakers, &acme, start, 3);
        assert_eq!(breakers.enter(&acme, start).err(), Some(Refused::Resting));
        assert!(breakers.enter(&merchant("rival"), start).is_ok());
    }

    #[test]
    fn after_its_rest_one_question_decides() {
        let (breakers, acme, start) = (breakers(), merchant("acme"), Instant::now());
        fail(&breakers, &acme, start, 3);
        let later = start + Duration::from_secs(10);
        let probe = breakers.enter(&acme, later).unwrap();
        assert_eq!(breakers.enter(&acme, later).err(), Some(Refused::Resting));
        probe.settle(false, later);
        assert_eq!(breakers.enter(&acme, later).err(), Some(Refused::Resting));
        let later = later + Duration::from_secs(10);
        breakers.enter(&acme, later).unwrap().settle(true, later);
        fail(&breakers, &acme, later, 2);
        assert!(breakers.enter(&acme, later).is_ok());
    }

    #[test]
    fn a_question_that_is_given_up_frees_its_place() {
        let (breakers, acme, start) = (breakers(), merchant("acme"), Instant::now());
        fail(&breakers, &acme, start, 3);
        let later = start + Duration::from_secs(10);
        drop(breakers.enter(&acme, later).unwrap());
        assert!(breakers.enter(&acme, later).is_ok());
    }

    #[test]
    fn only_so_many_at_once() {
        let (breakers, acme, start) = (breakers(), merchant("acme"), Instant::now());
        let all: Vec<_> = (0..4).map(|_| breakers.enter(&acme, start).unwrap()).collect();
        assert_eq!(breakers.enter(&acme, start).err(), Some(Refused::Busy));
        drop(all);
        assert!(breakers.enter(&acme, start).is_ok());
    }

    #[test]
    fn a_merchant_that_changed_is_asked_again() {
        let (breakers, mut acme, start) = (breakers(), merchant("acme"), Instant::now());
        let old = breakers.enter(&acme, start).unwrap();
        fail(&breakers, &acme, start, 3);
        acme.version += 1;
        let passage = breakers.enter(&acme, start).unwrap();
        old.settle(false, start);
        passage.settle(true, start);
        assert!(breakers.enter(&acme, start).is_ok());
    }
}
