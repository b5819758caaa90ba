//! Moves messages from the ledger into the broker: due, first of their ordering_key, and only as many of
//! an endpoint as its window allows.
//!
//! One replica leads at a time: the lock is held by the connection that picks. A message is marked
//! queued before it is published. If it never gets there, it is given back at once or, if this
//! process dies in between, recalled when its lease is over.

use std::time::Duration;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::message_kind::MessageKind;
use messaging::{BrokerError, Message, NotQueued, Publisher};
use platform::{
    Timestamp,
    database::{DatabaseError, LeaderTask, PollOutcome},
};
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::engine::{Engine, default_exchange, header};
use crate::ledger::{self, Content, Due, Picked, Walked};
use crate::window::Window;

/// A batch this large means that there is a lot to do: then fewer, larger batches cost less.
const BUSY: usize = 16;
const BUSY_PAUSE: Duration = Duration::from_millis(25);
/// How often it looks for lost messages, for ordering_keys that stand still and for endpoints that are back.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(crate) enum DispatchError {
    #[error("ledger")]
    Database(#[from] DatabaseError),
    #[error("publishing")]
    BrokerConnection(#[from] BrokerError),
    #[error("{0} messages lead to no queue; declaring the queues again")]
    Unroutable(usize),
    #[error("the broker refused {0} messages")]
    Refused(usize),
}

impl From<diesel::result::Error> for DispatchError {
    fn from(error: diesel::result::Error) -> Self {
        DatabaseError::from(error).into()
    }
}

pub(crate) struct Dispatcher {
    engine: Arc<Engine>,
    publisher: Publisher,
    kept_house_at: Option<Instant>,
    walked: Walked,
}

impl Dispatcher {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let publisher = Publisher::new(engine.broker.publishing.clone());
        Self { engine, publisher, kept_house_at: None, walked: Walked::default() }
    }

    pub(crate) async fn run(self, stop: CancellationToken) {
        let engine = self.engine.clone();
        if !engine.knows_merchants(&stop).await {
            return;
        }
        let (pool, wake) = (engine.pool.clone(), engine.wake.clone());
        pool.run_as_leader(self, wake, engine.settings.poll, stop).await;
    }
}

impl LeaderTask for Dispatcher {
    const LOCK: i64 = 0x6465_6C69_7665_7279;
    const FAILURE_MESSAGE: &'static str = "messages wait in the ledger";
    type Error = DispatchError;

    /// Queues one batch.
    async fn poll(&mut self, conn: &mut AsyncPgConnection) -> Result<PollOutcome, DispatchError> {
        let engine = &self.engine;
        let now = engine.clock.now();
        if self.kept_house_at.is_none_or(|at| at.elapsed() >= HOUSEKEEPING) {
            run_maintenance(conn, engine, &mut self.walked, now).await?;
            self.kept_house_at = Some(Instant::now());
        }
        let (merchants, kinds) = engine.paused();
        let initial_window = Window::new(engine.settings.windows()).size();
        let due = Due {
            now,
            lease: engine.settings.lease,
            initial_window: initial_window.try_into().unwrap_or(i32::MAX),
            closed: (&merchants, &kinds),
            most: engine.settings.dispatch_batch.get().into(),
        };
        // Picking writes, and what is picked in vain has to be given back.
        self.publisher.check_ready().await?;
        let ledger::Look { picked, held } = ledger::pick(conn, due).await?;
        if picked.is_empty() {
            return Ok(if held > 0 { PollOutcome::Busy } else { PollOutcome::Idle });
        }
        let (ids, messages): (Vec<_>, Vec<_>) = picked
            .into_iter()
            .filter_map(|(picked, content)| message(engine, picked, content, due.lease_until()))
            .unzip();
        let published = self.publisher.publish(&messages).await;
        let lost: Vec<Uuid> = match &published {
            Ok(words) => {
                let each = ids.iter().zip(words);
                each.filter(|(_, word)| word.is_err()).map(|(id, _)| *id).collect()
            }
            Err(_) => ids,
        };
        if !lost.is_empty() {
            ledger::release_claim(conn, now, &lost).await?;
        }
        let words = published?;
        let not_taken = |why| words.iter().filter(|word| **word == Err(why)).count();
        match (not_taken(NotQueued::Unroutable), not_taken(NotQueued::Nacked)) {
            (0, 0) if words.len() < BUSY => Ok(PollOutcome::Busy),
            (0, 0) => Ok(PollOutcome::Saturated(BUSY_PAUSE)),
            (0, refused) => Err(DispatchError::Refused(refused)),
            (unroutable, _) => Err(DispatchError::Unroutable(unroutable)),
        }
    }
}

/// What goes into the broker. A kind that nobody knows stays where it is and is looked at again when
/// its lease is over.
fn message(
    engine: &Engine,
    picked: Picked,
    content: Content,
    lease_until: Timestamp,
) -> Option<(Uuid, Message)> {
    let Ok(kind) = picked.kind.parse::<MessageKind>() else {
        tracing::error!(delivery.id = %picked.id, kind = picked.kind, "no such kind");
        return None;
    };
    let mut headers = vec![
        (header::DELIVERY, picked.id.to_string()),
        (header::MERCHANT, picked.merchant),
        (header::EVENT, content.event),
        (header::SEQUENCE, picked.sequence.to_string()),
        (header::ROUND, picked.round.to_string()),
        (header::ATTEMPT, (picked.attempts + 1).to_string()),
        (header::LEASE_UNTIL, lease_until.timestamp_millis().to_string()),
    ];
    if picked.requeues > 0 {
        headers.push((header::RECALLED, picked.requeues.to_string()));
    }
    headers.extend(content.traceparent.map(|parent| (header::TRACEPARENT, parent)));
    let message = Message {
        exchange: default_exchange(),
        routing_key: engine.broker.topology.qualified(kind.queue()),
        id: picked.id.to_string(),
        content_type: "application/json",
        headers,
        body: content.body,
    };
    Some((picked.id, message))
}

#[derive(QueryableByName)]
struct Gone {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = BigInt)]
    disabled_at_version: i64,
}

/// Recalls what was lost, moves ordering_keys that stand still, and opens the endpoints whose merchant changed
/// since they were gone.
async fn run_maintenance(
    conn: &mut AsyncPgConnection,
    engine: &Engine,
    walked: &mut Walked,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let recalled = ledger::expire_leases(conn, now).await?;
    if recalled > 0 {
        tracing::warn!(messages = recalled, "{recalled} messages were lost in the broker");
        engine.metrics.recalled(recalled);
    }
    let released = ledger::unblock_heads(conn, walked).await?;
    if released > 0 {
        tracing::warn!(ordering_keys = released, "{released} ordering_keys stood still");
    }
    let gone: Vec<Gone> = diesel::sql_query(
        "SELECT merchant, kind, disabled_at_version FROM delivery_endpoints \
         WHERE disabled_at_version IS NOT NULL",
    )
    .load(conn)
    .await?;
    for gone in gone {
        let id = gone.merchant.parse().map_err(ledger::unreadable)?;
        let version = engine.merchants.get(&id).map(|merchant| merchant.version);
        if version.is_some_and(|version| version > gone.disabled_at_version) {
            // One at a time: whoever holds several locks them in an order of its own.
            diesel::sql_query(
                "UPDATE delivery_endpoints SET disabled_at_version = NULL \
                 WHERE merchant = $1 AND kind = $2 AND disabled_at_version <= $3",
            )
            .bind::<Text, _>(&gone.merchant)
            .bind::<Text, _>(&gone.kind)
            .bind::<BigInt, _>(gone.disabled_at_version)
            .execute(conn)
            .await?;
        }
    }
    Ok(())
}
