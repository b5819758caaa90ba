//! The claims of a transaction that appends messages ([`crate::direct_claims`]).
//!
//! Its messages are stored as queued, and published after the commit. If the transaction fails, or is abandoned, the
//! claims are released, because it may have been committed after all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use platform::Timestamp;
use platform::database::{is_in_transaction, run_after_commit};
use tokio::time::Instant;
use uuid::Uuid;

use crate::direct_claims::DirectClaim;
use crate::engine::Engine;
use crate::store::{ClaimParams, EndpointKey, NewDelivery};
use crate::work_queues::{ClaimSender, ClaimedMessage};

/// Larger messages are left to the dispatcher, which counts their memory: claimed messages are in memory until the
/// broker has them.
const MAX_BODY_BYTES: usize = 16 * 1024;
/// From this number of claims on, the dispatcher polls to count them.
const MAX_UNCOUNTED: usize = 256;

pub(crate) struct OwnClaims {
    engine: Arc<Engine>,
    sender: ClaimSender,
    leased_until: Timestamp,
    /// The endpoints of the messages that may be claimed, by their positions.
    begun: Vec<Option<EndpointKey>>,
    claimed: Vec<(EndpointKey, ClaimedMessage)>,
}

impl OwnClaims {
    /// Begins claims of those messages whose endpoints may be sent to. `None` if there are none.
    pub(crate) fn begin(engine: &Arc<Engine>, now: Timestamp, new: &[NewDelivery]) -> Option<Self> {
        // Otherwise nobody would notice the commit.
        if !is_in_transaction() {
            return None;
        }
        let sender = engine.work_queues.sender()?;
        let mut ordering_keys = HashSet::new();
        let begun = new.iter().map(|NewDelivery { message, .. }| {
            let ordering_key = message.ordering_key.as_deref();
            // The others of an ordering key wait for the first.
            let is_first =
                ordering_key.is_none_or(|key| ordering_keys.insert((&message.merchant, key)));
            let endpoint = (message.merchant.to_string(), message.kind.name().to_owned());
            let is_begun = is_first
                && message.body.len() <= MAX_BODY_BYTES
                && engine.is_active(&endpoint.0, message.kind)
                && engine.direct_claims.begin(&endpoint, Instant::now());
            is_begun.then_some(endpoint)
        });
        let begun: Vec<_> = begun.collect();
        let leased_until = ClaimParams { now, lease: engine.settings.lease }.leased_until();
        let engine = engine.clone();
        let has_begun = begun.iter().any(Option::is_some);
        has_begun.then(|| Self { engine, sender, leased_until, begun, claimed: Vec::new() })
    }

    /// The leases of the messages, by their positions.
    pub(crate) fn leases(&self) -> Vec<Option<Timestamp>> {
        self.begun.iter().map(|begun| begun.as_ref().map(|_| self.leased_until)).collect()
    }

    /// Completes the claims of queued messages after the commit, and gives the others up.
    pub(crate) fn complete(mut self, new: &[NewDelivery], queued: &HashMap<Uuid, i64>) {
        for (endpoint, new) in std::mem::take(&mut self.begun).into_iter().zip(new) {
            let Some(endpoint) = endpoint else { continue };
            let Some(sequence) = queued.get(&new.id) else {
                self.engine.direct_claims.give_up(endpoint);
                continue;
            };
            let message = self.message(new, *sequence);
            self.claimed.push((endpoint, message));
        }
        if !self.claimed.is_empty() {
            run_after_commit(move || self.publish());
        }
    }

    fn message(&self, new: &NewDelivery, sequence: i64) -> ClaimedMessage {
        let NewDelivery { id, traceparent, message } = new;
        ClaimedMessage {
            id: *id,
            merchant: message.merchant.to_string(),
            kind: message.kind,
            version: i32::from(message.version.0),
            event: message.event.clone(),
            sequence,
            replay_number: 0,
            attempts: 0,
            releases: 0,
            leased_until: self.leased_until,
            is_window_full: false,
            traceparent: traceparent.clone(),
            body: message.body.to_vec(),
        }
    }

    fn publish(mut self) {
        let (endpoints, messages): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.claimed).into_iter().unzip();
        let claims = endpoints.into_iter().zip(&messages).map(|(endpoint, message)| DirectClaim {
            id: message.id,
            endpoint,
            body_bytes: message.body.len(),
            leased_until: message.leased_until,
        });
        if self.engine.direct_claims.complete(claims.collect()) >= MAX_UNCOUNTED {
            self.engine.wake.notify_one();
        }
        self.sender.publish(messages);
    }
}

impl Drop for OwnClaims {
    fn drop(&mut self) {
        let begun = std::mem::take(&mut self.begun);
        begun.into_iter().flatten().for_each(|it| self.engine.direct_claims.give_up(it));
        let claimed = std::mem::take(&mut self.claimed);
        let ids: Vec<_> = claimed.iter().map(|(_, message)| message.id).collect();
        claimed.into_iter().for_each(|(it, _)| self.engine.direct_claims.give_up(it));
        if !ids.is_empty() {
            self.sender.release(ids);
        }
    }
}
