//! Entry point of the crate: starts the engine.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Broker, Outbox};
use platform::database::{DatabaseError, delete_older_than};
use platform::retry::Backoff;
use platform::sealing::Sealer;
use platform::shares::Shares;
use platform::{MemoryBudget, Process, Timestamp, chain};
use serde_json::Value;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::attempt::EndpointClient;
use crate::dispatcher::Dispatcher;
use crate::endpoints::Endpoints;
use crate::engine::{Engine, MAX_LISTENERS, MAX_LISTENERS_OF_MERCHANT, reconnect_backoff};
use crate::metrics::Metrics;
use crate::observer::SettlementObserver;
use crate::overdue_metrics;
use crate::replayer::Replayer;
use crate::sender::Sender;
use crate::settings::Settings;
use crate::settled_ids::SettledIds;
use crate::store::{self, ErasedMessages, Partitions};
use crate::writer::MessageWriter;

/// Every replica maintains the partitions. While a backup reads the history, each maintenance that
/// creates or drops a partition makes all writers wait for half a second.
const PARTITION_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Counts stay long enough to compare two years.
const COUNT_RETENTION: TimeDelta = TimeDelta::days(800);
/// The hours of which percentiles can be shown; there is a row for each endpoint, hour and bucket.
const LATENCY_RETENTION: TimeDelta = TimeDelta::days(30);
/// Replays that ended are listed this long. Their authors are in the logs, too.
const REPLAY_RETENTION: TimeDelta = TimeDelta::days(400);
/// Part of the request timeout that an endpoint check leaves for everything but its attempts.
const CHECK_OVERHEAD: Duration = Duration::from_secs(2);

/// Messages of a service to merchants. The service appends them as with a [`MessageWriter`].
#[derive(Clone)]
pub struct Deliveries(pub(crate) Arc<Engine>);

impl Deref for Deliveries {
    type Target = MessageWriter;

    fn deref(&self) -> &MessageWriter {
        &self.0.writer
    }
}

impl Deliveries {
    /// Starts to deliver messages of these kinds. Events such as `delivery.dead.v1` go to `outbox`.
    pub fn start(
        outbox: &Outbox,
        process: &Process,
        broker: &Broker,
        merchants: &Arc<Merchants>,
        sealer: &Arc<Sealer>,
        kinds: &[MessageKind],
        settings: Settings,
    ) -> anyhow::Result<Self> {
        let shared = (broker, merchants, sealer);
        Self::start_observed(Arc::new(()), outbox, process, shared, kinds, settings)
    }

    /// Starts like [`Deliveries::start`], with an observer of settled deliveries.
    pub fn start_observed(
        observer: Arc<dyn SettlementObserver>,
        outbox: &Outbox,
        process: &Process,
        (broker, merchants, sealer): (&Broker, &Arc<Merchants>, &Arc<Sealer>),
        kinds: &[MessageKind],
        settings: Settings,
    ) -> anyhow::Result<Self> {
        let wake = Arc::new(Notify::new());
        let engine = Arc::new(Engine {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            broker: broker.clone(),
            merchants: merchants.clone(),
            endpoints: Endpoints::new(merchants.clone(), sealer.clone()),
            endpoint_client: settings.endpoint_client()?,
            schedule: settings.schedule()?,
            inflight_budget: MemoryBudget::new(settings.max_inflight_bytes),
            outbox: outbox.clone(),
            kinds: kinds.to_vec(),
            settings,
            // A check may make two attempts, the second with a new token.
            check_timeout: process.http.request_timeout.saturating_sub(CHECK_OVERHEAD) / 2,
            observer,
            metrics: Metrics::new(),
            writer: MessageWriter::new(merchants, &wake),
            wake,
            settled: SettledIds::default(),
            replayed: Notify::new(),
            listeners: Shares::new(MAX_LISTENERS_OF_MERCHANT, MAX_LISTENERS),
            health: process.health.clone(),
        });
        maintain_partitions(&engine, process);
        overdue_metrics::watch(&engine, process);
        let dispatcher = Dispatcher::new(engine.clone());
        process.tasks.spawn("dispatcher", |stop| dispatcher.run(stop));
        let replayer = Replayer::new(engine.clone());
        process.tasks.spawn("replayer", |stop| replayer.run(stop));
        for kind in kinds {
            let engine = engine.clone();
            let drain_deadline = process.tasks.drain_deadline();
            let sender = |stop| Sender::new(engine, *kind, (stop, drain_deadline)).run();
            process.tasks.spawn("sender", sender);
        }
        Ok(Self(engine))
    }

    /// Ends when the merchants are loaded: until then, messages would be written in the default version.
    pub async fn merchants_loaded(&self) {
        self.0.merchants.loaded().await;
    }

    /// Creates the ids of messages, for [`MessageWriter::append_new`].
    pub fn new_ids(now: Timestamp, number: usize) -> Vec<Uuid> {
        store::new_ids(now, number)
    }

    /// Locks the ordering keys to which a batch appends later, each with its merchant. Returns false if another
    /// transaction has locked one of them: a batch must not wait for it.
    pub async fn lock_free_counters(
        conn: &AsyncPgConnection,
        ordering_keys: &[(&str, String)],
    ) -> Result<bool, DatabaseError> {
        store::lock_free_counters(conn, ordering_keys).await
    }

    /// Deletes the message of a settled delivery, so that it cannot be replayed. Returns false if
    /// the delivery is not settled.
    pub async fn delete_settled(
        conn: &mut AsyncPgConnection,
        id: Uuid,
    ) -> Result<bool, DatabaseError> {
        store::delete_settled(conn, id).await
    }

    /// The body of a message, as long as the history has it.
    pub async fn body(
        conn: &mut AsyncPgConnection,
        id: Uuid,
    ) -> Result<Option<Vec<u8>>, DatabaseError> {
        store::stored_body(conn, id).await
    }

    /// Whether a delivery is neither delivered nor dead.
    pub async fn is_pending(conn: &mut AsyncPgConnection, id: Uuid) -> Result<bool, DatabaseError> {
        store::is_pending(conn, id).await
    }

    /// Applies `erase` to the bodies of the shopper's messages, and replaces the merchant's responses to them.
    /// Returns the number of changed messages. A message that is in the broker is sent as it was; a retry or a
    /// replay sends the erased body.
    pub async fn erase(
        conn: &mut AsyncPgConnection,
        merchant: &MerchantId,
        messages: ErasedMessages<'_>,
        is_of_shopper: impl Fn(&Value) -> bool,
        erase: impl Fn(&mut Value),
    ) -> Result<usize, DatabaseError> {
        store::erase(conn, merchant, messages, is_of_shopper, erase).await
    }

    /// Returns the client for other requests to merchants' endpoints.
    pub fn endpoint_client(&self) -> &EndpointClient {
        &self.0.endpoint_client
    }

    pub fn endpoints(&self) -> &Endpoints {
        &self.0.endpoints
    }
}

/// Creates and drops partitions in the background. The service is ready after the first success.
fn maintain_partitions(engine: &Arc<Engine>, process: &Process) {
    let maintained = Arc::new(AtomicBool::new(false));
    let ready = maintained.clone();
    process.health.add("delivery partitions", move || {
        let ready = ready.load(Ordering::Relaxed);
        async move { ready.then_some(()).ok_or_else(|| "not created yet".to_owned()) }
    });
    let engine = engine.clone();
    process.tasks.spawn("delivery partitions", |stop| async move {
        let mut backoff = reconnect_backoff();
        while !stop.is_cancelled() {
            let pause = match maintain_once(&engine).await {
                Ok(()) => {
                    maintained.store(true, Ordering::Relaxed);
                    backoff.reset();
                    PARTITION_INTERVAL
                }
                Err(error) => {
                    tracing::warn!(error = chain(&error), "partition maintenance failed");
                    pause_after_failure(maintained.load(Ordering::Relaxed), &mut backoff)
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    });
}

/// Maintenance is not urgent once the coming days have their partitions: while it waits for a lock
/// behind a long read, all writers wait.
fn pause_after_failure(maintained: bool, backoff: &mut Backoff) -> Duration {
    if maintained { PARTITION_INTERVAL } else { backoff.pause() }
}

async fn maintain_once(engine: &Engine) -> Result<(), DatabaseError> {
    let partitions = Partitions { retention_days: engine.settings.retention_days };
    let now = engine.clock.now();
    partitions.maintain(&mut *engine.pool.get().await?, now).await?;
    for (table, time, age) in [
        ("delivery_counts", "hour", COUNT_RETENTION),
        ("delivery_latencies", "hour", LATENCY_RETENTION),
        ("delivery_totals", "hour", LATENCY_RETENTION),
        ("delivery_replays", "finished_at", REPLAY_RETENTION),
        ("delivery_sample_requests", "requested_at", REPLAY_RETENTION),
    ] {
        delete_older_than(&engine.pool, table, time, now, age).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_maintenance_retries_fast_only_before_its_first_success() {
        assert!(pause_after_failure(false, &mut reconnect_backoff()) < Duration::from_secs(1));
        assert_eq!(pause_after_failure(true, &mut reconnect_backoff()), PARTITION_INTERVAL);
    }
}
