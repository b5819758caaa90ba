//! Publishes due deliveries to the broker: the first of each ordering key, and no more for each
//! endpoint than its window allows.
//!
//! One replica at a time dispatches, the one whose connection holds the advisory lock. A delivery is
//! marked as queued before it is published. If publishing fails the claim is released; if the process
//! dies in between, the lease expires.

use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use domain::message_kind::MessageKind;
use messaging::{BrokerError, Message, Publisher};
use platform::{
    Timestamp,
    database::{DatabaseError, LeaderTask, PollOutcome},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::engine::{Engine, default_exchange};
use crate::queue_message::header;
use crate::store::{self, ClaimParams, ClaimedDelivery, Content, OrderingKeyCursor};
use crate::window::Window;

/// From this batch size on, pauses between polls make fewer and larger batches, which cost less.
const SATURATED_BATCH: usize = 16;
const SATURATED_PAUSE: Duration = Duration::from_millis(25);
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

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
    maintained_at: Option<Instant>,
    cursor: OrderingKeyCursor,
}

impl Dispatcher {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let publisher = Publisher::new(engine.broker.publishing.clone());
        Self { engine, publisher, maintained_at: None, cursor: OrderingKeyCursor::default() }
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
        let engine = &self.engine;
        let now = engine.clock.now();
        if self.maintained_at.is_none_or(|at| at.elapsed() >= MAINTENANCE_INTERVAL) {
            run_maintenance(conn, engine, &mut self.cursor, now).await?;
            self.maintained_at = Some(Instant::now());
        }
        let (merchants, kinds) = engine.paused();
        let initial_window = Window::new(engine.settings.windows()).size();
        let params = ClaimParams {
            now,
            lease: engine.settings.lease,
            initial_window: initial_window.try_into().unwrap_or(i32::MAX),
            paused: (&merchants, &kinds),
            max_messages: engine.settings.dispatch_batch.get().into(),
        };
        // Claims write to the table, and claims that cannot be published have to be released.
        self.publisher.check_ready().await?;
        let store::Claims { claimed, blocked } = store::claim_due(conn, params).await?;
        if claimed.is_empty() {
            return Ok(if blocked > 0 { PollOutcome::Busy } else { PollOutcome::Idle });
        }
        let batch: (Vec<_>, Vec<_>) = claimed
            .into_iter()
            .filter_map(|(claimed, content)| {
                message(engine, claimed, content, params.leased_until())
            })
            .unzip();
        let messages = batch.0.len();
        self.publish(conn, now, batch).await?;
        Ok(if messages < SATURATED_BATCH {
            PollOutcome::Busy
        } else {
            PollOutcome::Saturated(SATURATED_PAUSE)
        })
    }
}

/// Builds the message for the work queue. A delivery of an unknown kind stays claimed until its lease
/// expires.
fn message(
    engine: &Engine,
    claimed: ClaimedDelivery,
    content: Content,
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
        (header::SEQUENCE, claimed.sequence.to_string()),
        (header::REPLAY_NUMBER, claimed.replay_number.to_string()),
        (header::ATTEMPT, (claimed.attempts + 1).to_string()),
        (header::LEASED_UNTIL, leased_until.timestamp_millis().to_string()),
    ];
    if claimed.requeues > 0 {
        headers.push((header::REQUEUES, claimed.requeues.to_string()));
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

/// Expires leases, repairs ordering keys, and enables endpoints again whose merchant changed after a
/// 410 response.
async fn run_maintenance(
    conn: &mut AsyncPgConnection,
    engine: &Engine,
    cursor: &mut OrderingKeyCursor,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let expired = store::expire_leases(conn, now).await?;
    if expired > 0 {
        tracing::warn!(deliveries = expired, "the leases of {expired} deliveries expired");
        engine.metrics.leases_expired(expired);
    }
    let unblocked = store::unblock_heads(conn, cursor).await?;
    if unblocked > 0 {
        tracing::warn!(deliveries = unblocked, "unblocked {unblocked} heads of ordering keys");
    }
    for disabled in store::disabled_endpoints(conn).await? {
        let id = disabled.merchant.parse().map_err(store::unreadable)?;
        let version = engine.merchants.get(&id).map(|merchant| merchant.version);
        if version.is_some_and(|version| version > disabled.version) {
            // One endpoint per transaction: settlers lock several, in an order of their own.
            store::enable_endpoint(conn, &disabled).await?;
        }
    }
    Ok(())
}
