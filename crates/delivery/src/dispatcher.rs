//! Publishes due deliveries to the broker: the first of each ordering key, and no more for each
//! endpoint than its window and its share of the memory allow.
//!
//! One replica at a time dispatches, the one whose connection holds the advisory lock. A delivery is
//! marked as queued before it is published. If publishing fails the claim is released; if the process
//! dies in between, the lease expires.
//!
//! See docs/decisions/delivery-scheduling.md.

mod in_flight;
mod schedule;
mod term;

use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use domain::message_kind::MessageKind;
use messaging::{BrokerError, Message, Publisher};
use platform::{
    Timestamp,
    database::{DatabaseError, LeaderTask, PollOutcome},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::engine::{Engine, default_exchange};
use crate::queue_message::header;
use crate::store::{self, ClaimParams};
use term::{Batch, QueuedDelivery, Term};

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
    term: Option<Term>,
}

impl Dispatcher {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let publisher = Publisher::new(engine.broker.publishing.clone());
        Self { engine, publisher, term: None }
    }

    pub(crate) async fn run(self, stop: CancellationToken) {
        let engine = self.engine.clone();
        if !engine.wait_for_merchants(&stop).await {
            return;
        }
        let (pool, wake) = (engine.pool.clone(), engine.wake.clone());
        pool.run_as_leader(self, wake, engine.settings.poll_interval, stop).await;
    }

    /// Publishes claimed deliveries, and releases those that the broker did not accept.
    async fn publish(
        &self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
        (ids, messages): (Vec<Uuid>, Vec<Message>),
    ) -> Result<(), DispatchError> {
        let confirms = self.publisher.publish(&messages).await;
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
    const LOCK: i64 = 0x6465_6C69_7665_7279;
    const FAILURE_MESSAGE: &'static str = "dispatching deliveries failed";
    type Error = DispatchError;

    /// Claims and publishes one batch.
    async fn poll(&mut self, conn: &mut AsyncPgConnection) -> Result<PollOutcome, DispatchError> {
        let term = self.term.take();
        // Claims write to the table, and claims that cannot be published have to be released.
        self.publisher.check_ready().await?;
        let (engine, now) = (&self.engine, self.engine.clock.now());
        let params = ClaimParams { now, lease: engine.settings.lease };
        let mut term = match term {
            Some(term) => term,
            None => Term::begin(conn, engine, now).await?,
        };
        let Batch { queued, is_incomplete } = term.poll(conn, engine, params).await?;
        let batch: (Vec<_>, Vec<_>) = queued
            .into_iter()
            .filter_map(|queued| message(engine, queued, params.leased_until()))
            .unzip();
        let messages = batch.0.len();
        if messages > 0 {
            self.publish(conn, now, batch).await?;
        }
        let has_more = is_incomplete || term.schedule.has_turns();
        self.term = Some(term);
        Ok(match messages {
            0 if !is_incomplete => PollOutcome::Idle,
            SATURATED_BATCH.. => PollOutcome::Saturated(SATURATED_PAUSE),
            _ if has_more => PollOutcome::Busy,
            _ => PollOutcome::Complete,
        })
    }
}

/// Builds the message for the work queue. A delivery of an unknown kind stays claimed until its lease
/// expires.
fn message(
    engine: &Engine,
    (claimed, content, is_window_full): QueuedDelivery,
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
    if claimed.requeues > 0 {
        headers.push((header::REQUEUES, claimed.requeues.to_string()));
    }
    if is_window_full {
        headers.push((header::WINDOW_FULL, "true".to_owned()));
    }
    headers.extend(content.traceparent.map(|parent| (header::TRACEPARENT, parent)));
    let message = Message {
        exchange: default_exchange(),
        routing_key: engine.broker.topology.qualified(kind.queue()),
        id: claimed.id.to_string(),
        content_type: "application/json",
        headers,
        body: content.body,
    };
    Some((claimed.id, message))
}
