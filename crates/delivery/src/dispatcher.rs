//! Publishes due deliveries to the broker: the first of each ordering key, and no more for each
//! endpoint than its window and its share of the memory allow.
//!
//! One replica at a time dispatches, the one whose connection holds the advisory lock. PostgreSQL has the
//! state of every delivery. The dispatcher keeps in memory only what it can load again: which endpoints
//! have due deliveries ([`endpoint_queue`]), and which deliveries are in flight ([`in_flight`]).
//!
//! ```text
//!             append, replay
//!                   |
//!                   v                    behind another of its ordering key
//!   +--------->   ready   --------------------------------------> blocked
//!   |               |     <--------------------------------------    |
//!   |               |            the other one was settled
//!   |               |
//!   |               | claim: it is due, and its endpoint may be sent to
//!   |               v
//!   |            queued   in flight: in the broker or with a sender, under a lease
//!   |               |
//!   |               +--> delivered   2xx response
//!   |               +--> dead        the last attempt failed
//!   |               |
//!   +---------------+  the attempt failed and is retried later, the broker did not accept the message,
//!                      or the lease expired
//! ```
//!
//! The steps of a poll ([`dispatch_state`]):
//! 1. Maintenance, each task at its own interval: expire leases, unblock ordering keys, compare the
//!    deliveries in flight with the database, scan for endpoints that earlier polls missed.
//! 2. Note what changed: settled deliveries, probes that are due, resumed endpoints.
//! 3. Read the deliveries that became due since the last poll. Their endpoints join the queue.
//! 4. Take endpoints from the queue. An endpoint that may not be sent to waits for an event: a settlement,
//!    its next probe, or its resumption.
//! 5. Claim deliveries of the others in one statement, an equal part for each endpoint, and hand them to the publisher
//!    ([`crate::work_queues`]).
//!
//! A delivery is marked as queued before it is published. If publishing fails the claim is released, and the leader
//! yields to a replica that may reach the broker; if the process dies in between, the lease expires.
//!
//! See docs/decisions/delivery-scheduling.md.

mod dispatch_state;
mod endpoint_queue;
mod in_flight;

use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use domain::message_kind::MessageKind;
use messaging::BrokerError;
use platform::{
    Timestamp,
    database::{DatabaseError, LeaderTask, PollOutcome},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::store::ClaimParams;
use crate::work_queues::ClaimedMessage;
use dispatch_state::{Batch, DispatchState, QueuedDelivery};

/// From this batch size on, a longer interval of polls makes fewer and larger batches, which cost less.
const SATURATED_BATCH: usize = 16;
const SATURATED_INTERVAL: Duration = Duration::from_millis(60);
/// Pause while many claimed deliveries wait for the broker.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

#[derive(Debug, thiserror::Error)]
pub(crate) enum DispatchError {
    #[error("database")]
    Database(#[from] DatabaseError),
    #[error("broker")]
    Broker(#[from] BrokerError),
    #[error("the broker did not accept deliveries")]
    NotAccepted,
}

pub(crate) struct Dispatcher {
    engine: Arc<Engine>,
    /// None until the first poll of a leader, and after a poll that failed: leadership ends with it.
    state: Option<DispatchState>,
}

impl Dispatcher {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, state: None }
    }

    pub(crate) async fn run(self, stop: CancellationToken) {
        let engine = self.engine.clone();
        if !engine.wait_for_merchants(&stop).await {
            return;
        }
        let pool = engine.pool.clone();
        let wake = engine.wake.clone();
        pool.run_as_leader(self, wake, engine.settings.poll_interval, stop).await;
    }
}

impl LeaderTask for Dispatcher {
    const LOCK: i64 = i64::from_be_bytes(*b"delivery");
    const FAILURE_MESSAGE: &'static str = "dispatching deliveries failed";
    type Error = DispatchError;

    /// Claims one batch and hands it to the publisher.
    async fn poll(&mut self, conn: &mut AsyncPgConnection) -> Result<PollOutcome, DispatchError> {
        let start = Instant::now();
        // A poll that fails leaves none, so that the next leader loads its state again.
        let state = self.state.take();
        let engine = &self.engine;
        // A failure from before this replica was the leader says nothing.
        if engine.work_queues.take_failure() && state.is_some() {
            return Err(DispatchError::NotAccepted);
        }
        // Claims write to the table, and claims that cannot be published have to be released.
        engine.broker.publishing.check_ready().await?;
        let Some(claims) = engine.work_queues.sender() else {
            // The process stops.
            return Ok(PollOutcome::Idle);
        };
        if engine.work_queues.is_busy() {
            self.state = state;
            return Ok(PollOutcome::Saturated(BUSY_PAUSE));
        }
        let now = engine.clock.now();
        let params = ClaimParams { now, lease: engine.settings.lease };
        let mut state = match state {
            Some(state) => state,
            None => DispatchState::load(conn, engine, now).await?,
        };
        let Batch { queued, may_have_more_now } = state.claim_batch(conn, engine, params).await?;
        let leased_until = params.leased_until();
        let claimed: Vec<_> =
            queued.into_iter().filter_map(|queued| claimed_message(queued, leased_until)).collect();
        let messages = claimed.len();
        if messages > 0 {
            claims.publish(claimed);
        }
        let has_more = may_have_more_now || state.has_queued_endpoints();
        self.state = Some(state);
        Ok(match messages {
            0 if !may_have_more_now => PollOutcome::Idle,
            SATURATED_BATCH.. => {
                PollOutcome::Saturated(SATURATED_INTERVAL.saturating_sub(start.elapsed()))
            }
            _ if has_more => PollOutcome::Busy,
            _ => PollOutcome::Complete,
        })
    }
}

/// A delivery of an unknown kind stays claimed until its lease expires.
fn claimed_message(queued: QueuedDelivery, leased_until: Timestamp) -> Option<ClaimedMessage> {
    let QueuedDelivery { delivery: claimed, content, is_window_full } = queued;
    let Ok(kind) = claimed.kind.parse::<MessageKind>() else {
        let id = claimed.id;
        tracing::error!(delivery.id = %id, kind = claimed.kind, "delivery {id} has an unknown kind");
        return None;
    };
    Some(ClaimedMessage {
        id: claimed.id,
        merchant: claimed.merchant,
        kind,
        version: content.version,
        event: content.event,
        sequence: claimed.sequence,
        replay_number: claimed.replay_number,
        attempts: claimed.attempts,
        releases: claimed.releases,
        leased_until,
        is_window_full,
        traceparent: content.traceparent,
        body: content.body,
    })
}
