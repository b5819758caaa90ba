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
//! 5. Claim deliveries of the others in one statement, an equal part for each endpoint, and publish them.
//!
//! A delivery is marked as queued before it is published. If publishing fails the claim is released; if
//! the process dies in between, the lease expires.
//!
//! See docs/decisions/delivery-scheduling.md.

mod dispatch_state;
mod endpoint_queue;
mod in_flight;

use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use domain::message_kind::MessageKind;
use messaging::{BrokerError, Message, Publisher, Topology};
use platform::{
    Timestamp,
    database::{DatabaseError, LeaderTask, PollOutcome},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::engine::{Engine, default_exchange};
use crate::queue_message::header;
use crate::store::{self, ClaimParams};
use dispatch_state::{Batch, DispatchState, QueuedDelivery};

/// From this batch size on, pauses between polls make fewer and larger batches, which cost less.
const SATURATED_BATCH: usize = 16;
const SATURATED_PAUSE: Duration = Duration::from_millis(25);

#[derive(Debug, thiserror::Error)]
pub(crate) enum DispatchError {
    #[error("database")]
    Database(#[from] DatabaseError),
    #[error("publishing")]
    Broker(#[from] BrokerError),
    #[error("the broker did not accept {0} messages")]
    NotAccepted(usize),
}

pub(crate) struct Dispatcher {
    engine: Arc<Engine>,
    publisher: Publisher,
    /// None until the first poll of a leader, and after a poll that failed: leadership ends with it.
    state: Option<DispatchState>,
}

impl Dispatcher {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let publisher = Publisher::new(engine.broker.publishing.clone());
        Self { engine, publisher, state: None }
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

    /// Publishes claimed deliveries, and releases those that the broker did not accept.
    async fn publish(
        &self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
        ids: Vec<Uuid>,
        messages: &[Message],
    ) -> Result<(), DispatchError> {
        let confirms = self.publisher.publish(messages).await;
        let unpublished: Vec<Uuid> = match &confirms {
            Ok(confirms) => {
                let confirms = ids.into_iter().zip(confirms);
                confirms.filter(|(_, confirm)| confirm.is_err()).map(|(id, _)| id).collect()
            }
            Err(_) => ids,
        };
        if !unpublished.is_empty() {
            store::release_claim(conn, now, &unpublished).await?;
        }
        confirms?;
        match unpublished.len() {
            0 => Ok(()),
            messages => Err(DispatchError::NotAccepted(messages)),
        }
    }
}

impl LeaderTask for Dispatcher {
    const LOCK: i64 = i64::from_be_bytes(*b"delivery");
    const FAILURE_MESSAGE: &'static str = "dispatching deliveries failed";
    type Error = DispatchError;

    /// Claims and publishes one batch.
    async fn poll(&mut self, conn: &mut AsyncPgConnection) -> Result<PollOutcome, DispatchError> {
        // A poll that fails leaves none, so that the next leader loads its state again.
        let state = self.state.take();
        // Claims write to the table, and claims that cannot be published have to be released.
        self.publisher.check_ready().await?;
        let engine = &self.engine;
        let now = engine.clock.now();
        let params = ClaimParams { now, lease: engine.settings.lease };
        let mut state = match state {
            Some(state) => state,
            None => DispatchState::load(conn, engine, now).await?,
        };
        let Batch { queued, may_have_more_now } = state.claim_batch(conn, engine, params).await?;
        let (ids, messages): (Vec<_>, Vec<_>) = queued
            .into_iter()
            .filter_map(|queued| message(&engine.broker.topology, queued, params.leased_until()))
            .unzip();
        if !messages.is_empty() {
            self.publish(conn, now, ids, &messages).await?;
        }
        let has_more = may_have_more_now || state.has_queued_endpoints();
        self.state = Some(state);
        Ok(match messages.len() {
            0 if !may_have_more_now => PollOutcome::Idle,
            SATURATED_BATCH.. => PollOutcome::Saturated(SATURATED_PAUSE),
            _ if has_more => PollOutcome::Busy,
            _ => PollOutcome::Complete,
        })
    }
}

/// Builds the message for the work queue. A delivery of an unknown kind stays claimed until its lease
/// expires.
fn message(
    topology: &Topology,
    QueuedDelivery { delivery: claimed, content, is_window_full }: QueuedDelivery,
    leased_until: Timestamp,
) -> Option<(Uuid, Message)> {
    let Ok(kind) = claimed.kind.parse::<MessageKind>() else {
        let id = claimed.id;
        tracing::error!(delivery.id = %id, kind = claimed.kind, "delivery {id} has an unknown kind");
        return None;
    };
    let mut headers = vec![
        (header::DELIVERY, claimed.id.to_string()),
        (header::MERCHANT, claimed.merchant),
        (header::EVENT, content.event),
        (header::VERSION, content.version.to_string()),
        (header::SEQUENCE, claimed.sequence.to_string()),
        (header::REPLAY_NUMBER, claimed.replay_number.to_string()),
        (header::ATTEMPT, (claimed.attempts + 1).to_string()),
        (header::LEASED_UNTIL, leased_until.timestamp_millis().to_string()),
    ];
    if claimed.releases > 0 {
        headers.push((header::RELEASES, claimed.releases.to_string()));
    }
    if is_window_full {
        headers.push((header::WINDOW_FULL, "true".to_owned()));
    }
    headers.extend(content.traceparent.map(|parent| (header::TRACEPARENT, parent)));
    let message = Message {
        exchange: default_exchange(),
        routing_key: topology.qualified(kind.queue()),
        id: claimed.id.to_string(),
        content_type: "application/json",
        headers,
        body: content.body,
    };
    Some((claimed.id, message))
}
