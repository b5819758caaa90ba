//! How many messages of which endpoints requests may claim themselves.
//!
//! The dispatcher decides which messages are sent next. For most of them there is nothing to decide: their endpoint
//! has no backlog, and its window has room. After a poll the dispatcher therefore allows each such endpoint as many
//! messages as its window and its share of the memory still take. A transaction that appends one of them stores it as
//! queued, which saves a poll, and a second version of the row (`own_claims.rs`).
//!
//! ```text
//!                      allowed  pending  in flight
//! poll                    6        0         2      the window has 8 messages
//! append                  5        1         2
//! commit                  5        0         3      counted by the next poll
//! settled                 6        0         2
//! ```
//!
//! A failure, and the next poll that finds the endpoint due, withdraw what was allowed. So does the time: another
//! replica may have changed the window.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::Timestamp;
use tokio::time::Instant;
use uuid::Uuid;

use crate::store::EndpointKey;

/// Time for which messages are allowed.
const TTL: Duration = Duration::from_secs(5);
const CLEAN_UP_INTERVAL: Duration = Duration::from_secs(1);

/// A delivery that a request claimed, to be counted as in flight.
pub(crate) struct DirectClaim {
    pub(crate) id: Uuid,
    pub(crate) endpoint: EndpointKey,
    pub(crate) body_bytes: usize,
    pub(crate) leased_until: Timestamp,
}

#[derive(Debug, Default)]
struct Allowance {
    messages: u32,
    /// `None` if nothing is allowed, whatever is settled.
    until: Option<Instant>,
    /// Claims whose transactions have not ended.
    pending: u32,
}

impl Allowance {
    fn is_valid(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    fn withdraw(&mut self) {
        self.messages = 0;
        self.until = None;
    }

    fn add_one(&mut self) {
        self.messages += u32::from(self.until.is_some());
    }

    fn reserved(&self) -> u32 {
        self.messages.saturating_add(self.pending)
    }
}

#[derive(Default)]
struct State {
    endpoints: HashMap<EndpointKey, Allowance>,
    /// Messages that are allowed or pending, of all endpoints.
    reserved: u32,
    claimed: Vec<DirectClaim>,
    cleaned_up_at: Option<Instant>,
}

#[derive(Default)]
pub(crate) struct DirectClaims(Mutex<State>);

impl DirectClaims {
    /// Allows a number of messages, instead of those that were allowed before.
    pub(crate) fn allow(&self, endpoint: EndpointKey, messages: u32, now: Instant) {
        self.lock().change(endpoint, |allowance| {
            allowance.messages = messages;
            allowance.until = Some(now + TTL);
        });
    }

    /// Allows nothing more. Returns the number of claims whose transactions have not ended.
    pub(crate) fn withdraw(&self, endpoint: &EndpointKey) -> u32 {
        let mut state = self.lock();
        let Some(pending) = state.endpoints.get(endpoint).map(|it| it.pending) else { return 0 };
        state.change(endpoint.clone(), Allowance::withdraw);
        pending
    }

    /// Allows nothing more to any endpoint.
    pub(crate) fn withdraw_all(&self) {
        self.lock().withdraw_unless(|_| false);
    }

    /// Messages that are allowed or pending, or claimed and not counted yet.
    pub(crate) fn reserved(&self, now: Instant) -> u32 {
        let mut state = self.lock();
        if state.cleaned_up_at.is_none_or(|at| at + CLEAN_UP_INTERVAL <= now) {
            state.cleaned_up_at = Some(now);
            state.withdraw_unless(|allowance| allowance.is_valid(now));
        }
        let claimed = u32::try_from(state.claimed.len()).unwrap_or(u32::MAX);
        state.reserved.saturating_add(claimed)
    }

    /// Begins a claim, if one is allowed. The caller ends it with [`Self::give_up`] or [`Self::complete`].
    pub(crate) fn begin(&self, endpoint: &EndpointKey, now: Instant) -> bool {
        let mut state = self.lock();
        let is_allowed =
            state.endpoints.get(endpoint).is_some_and(|it| it.messages > 0 && it.is_valid(now));
        if is_allowed {
            state.change(endpoint.clone(), |allowance| {
                allowance.messages -= 1;
                allowance.pending += 1;
            });
        }
        is_allowed
    }

    /// Ends a claim that the transaction did not make.
    pub(crate) fn give_up(&self, endpoint: EndpointKey) {
        self.lock().change(endpoint, |allowance| {
            allowance.pending = allowance.pending.saturating_sub(1);
            allowance.add_one();
        });
    }

    /// Ends claims that were committed. Returns the number of those that the dispatcher has not counted.
    pub(crate) fn complete(&self, claims: Vec<DirectClaim>) -> usize {
        let mut state = self.lock();
        for claim in &claims {
            state.change(claim.endpoint.clone(), |allowance| {
                allowance.pending = allowance.pending.saturating_sub(1);
            });
        }
        state.claimed.extend(claims);
        state.claimed.len()
    }

    /// The claims since the last call.
    pub(crate) fn take_completed(&self) -> Vec<DirectClaim> {
        std::mem::take(&mut self.lock().claimed)
    }

    /// Notes results of deliveries: a success makes room for another message, anything else allows nothing more.
    pub(crate) fn settled(&self, results: impl IntoIterator<Item = (EndpointKey, bool)>) {
        let mut state = self.lock();
        for (endpoint, is_success) in results {
            if state.endpoints.contains_key(&endpoint) {
                let change = if is_success { Allowance::add_one } else { Allowance::withdraw };
                state.change(endpoint, change);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Changes what an endpoint is allowed, which is nothing at first.
    fn change(&mut self, endpoint: EndpointKey, change: impl FnOnce(&mut Allowance)) {
        let allowance = self.endpoints.entry(endpoint).or_default();
        let before = allowance.reserved();
        change(allowance);
        self.reserved = self.reserved.saturating_sub(before).saturating_add(allowance.reserved());
    }

    /// Withdraws all other allowances, and forgets the endpoints without any.
    fn withdraw_unless(&mut self, is_kept: impl Fn(&Allowance) -> bool) {
        for allowance in self.endpoints.values_mut().filter(|allowance| !is_kept(allowance)) {
            self.reserved = self.reserved.saturating_sub(allowance.messages);
            allowance.withdraw();
        }
        self.endpoints.retain(|_, it| it.until.is_some() || it.pending > 0);
    }
}

#[cfg(test)]
mod tests {
    use platform::Clock;

    use super::*;

    fn endpoint(merchant: &str) -> EndpointKey {
        (merchant.to_owned(), "rma".to_owned())
    }

    fn claim(merchant: &str) -> DirectClaim {
        DirectClaim {
            id: Uuid::now_v7(),
            endpoint: endpoint(merchant),
            body_bytes: 2,
            leased_until: Clock::system().now(),
        }
    }

    #[test]
    fn no_more_messages_are_claimed_than_are_allowed() {
        let claims = DirectClaims::default();
        let now = Instant::now();
        let acme = endpoint("acme");
        assert!(!claims.begin(&acme, now), "nothing is allowed at first");
        claims.allow(acme.clone(), 2, now);
        assert!(!claims.begin(&endpoint("nova"), now));
        assert!(claims.begin(&acme, now) && claims.begin(&acme, now));
        assert!(!claims.begin(&acme, now));
        assert_eq!(claims.complete(vec![claim("acme")]), 1);
        // The other transaction failed.
        claims.give_up(acme.clone());
        assert_eq!(claims.reserved(now), 2, "one is allowed, and one not counted");
        assert_eq!(claims.take_completed().len(), 1);
        assert!(claims.begin(&acme, now));
        assert_eq!(claims.withdraw(&acme), 1);
        assert_eq!(claims.reserved(now), 1);
    }

    #[test]
    fn a_success_makes_room_and_a_failure_withdraws_everything() {
        let claims = DirectClaims::default();
        let now = Instant::now();
        let acme = endpoint("acme");
        claims.settled([(acme.clone(), true)]);
        assert!(!claims.begin(&acme, now));
        claims.allow(acme.clone(), 0, now);
        claims.settled([(acme.clone(), true), (acme.clone(), true)]);
        assert!(claims.begin(&acme, now));
        claims.settled([(acme.clone(), false), (acme.clone(), true)]);
        assert!(!claims.begin(&acme, now));
        claims.complete(vec![claim("acme")]);
        claims.take_completed();
        assert_eq!(claims.reserved(now), 0);
    }

    #[test]
    fn allowances_end() {
        let claims = DirectClaims::default();
        let now = Instant::now();
        let acme = endpoint("acme");
        claims.allow(acme.clone(), 5, now);
        assert!(!claims.begin(&acme, now + TTL));
        assert_eq!(claims.reserved(now + TTL), 0);
        assert!(claims.lock().endpoints.is_empty());
        claims.allow(acme.clone(), 5, now);
        assert!(claims.begin(&acme, now));
        claims.withdraw_all();
        assert_eq!(claims.reserved(now), 1, "the claim that has begun");
        claims.give_up(acme.clone());
        assert!(!claims.begin(&acme, now));
    }
}
