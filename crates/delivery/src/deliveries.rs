//! What a service that delivers holds in its hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Broker, Outbox};
use platform::database::{DatabaseError, delete_older_than};
use platform::retry::Backoff;
use platform::sealing::Sealer;
use platform::{Process, Timestamp, chain};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::attempt::EndpointClient;
use crate::backlog;
use crate::dispatcher::Dispatcher;
use crate::endpoints::Endpoints;
use crate::engine::{Engine, patience};
use crate::ledger::{self, Log, NewMessage};
use crate::metrics::Metrics;
use crate::observer::SettlementObserver;
use crate::replayer::Replayer;
use crate::sender::Sender;
use crate::settings::Settings;

/// How often the days of the log are looked after, by every replica. While a backup reads the log,
/// each that finds a day to be made or dropped makes everybody wait for half a second.
const LOG_EVERY: Duration = Duration::from_secs(10 * 60);
/// For so long it is known how many messages there were, with room to compare two years.
const COUNTS_KEPT: TimeDelta = TimeDelta::days(800);

/// What is left of an operator's request when every sample took its time.
const SPARE: Duration = Duration::from_secs(2);

/// A service's messages to merchants.
#[derive(Clone)]
pub struct Deliveries(pub(crate) Arc<Engine>);

impl Deliveries {
    /// Starts to deliver messages of these kinds on behalf of `service`.
    pub fn start(
        service: &'static str,
        process: &Process,
        broker: &Broker,
        merchants: &Arc<Merchants>,
        sealer: &Arc<Sealer>,
        kinds: &[MessageKind],
        settings: Settings,
    ) -> anyhow::Result<Self> {
        let witness = Arc::new(());
        Self::start_before(witness, service, process, (broker, merchants, sealer), kinds, settings)
    }

    /// The same with a witness, who learns how each message ended.
    pub fn start_before(
        witness: Arc<dyn SettlementObserver>,
        service: &'static str,
        process: &Process,
        (broker, merchants, sealer): (&Broker, &Arc<Merchants>, &Arc<Sealer>),
        kinds: &[MessageKind],
        settings: Settings,
    ) -> anyhow::Result<Self> {
        let engine = Arc::new(Engine {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            broker: broker.clone(),
            merchants: merchants.clone(),
            endpoints: Endpoints::new(merchants.clone(), sealer.clone()),
            endpoint_client: settings.endpoint_client()?,
            outbox: Outbox::new(service),
            kinds: kinds.to_vec(),
            settings,
            // A new token may make two requests of it, and the operator waits for both.
            check_deadline: process.http.request_timeout.saturating_sub(SPARE) / 2,
            witness,
            metrics: Metrics::new(),
            wake: Arc::new(Notify::new()),
            replayed: Notify::new(),
        });
        keep_log(&engine, process);
        backlog::watch(&engine, process);
        let dispatcher = Dispatcher::new(engine.clone());
        process.tasks.spawn("dispatcher", |stop| dispatcher.run(stop));
        let replayer = Replayer::new(engine.clone());
        process.tasks.spawn("replayer", |stop| replayer.run(stop));
        for kind in kinds {
            let (engine, drain_deadline) = (engine.clone(), process.tasks.drain_deadline());
            let sender = |stop| Sender::new(engine, *kind, (stop, drain_deadline)).run();
            process.tasks.spawn("sender", sender);
        }
        Ok(Self(engine))
    }

    /// Writes messages that are delivered if, and only if, the caller's transaction commits.
    /// Returns their ids, which merchants see as `webhook-id`.
    pub async fn append(
        &self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
        messages: &[NewMessage],
    ) -> Result<Vec<Uuid>, DatabaseError> {
        let ids = ledger::append(conn, now, messages).await?;
        if !ids.is_empty() {
            self.0.wake.notify_one();
        }
        Ok(ids)
    }

    /// Takes back a message that was given up, for good: nobody can replay it any more. Returns
    /// whether that worked; a message that is on its way cannot be taken back.
    pub async fn withdraw(
        &self,
        conn: &mut AsyncPgConnection,
        id: Uuid,
    ) -> Result<bool, DatabaseError> {
        ledger::withdraw(conn, id).await
    }

    /// For what a service asks a merchant rather than tells it.
    pub fn endpoint_client(&self) -> &EndpointClient {
        &self.0.endpoint_client
    }

    pub fn endpoints(&self) -> &Endpoints {
        &self.0.endpoints
    }
}

/// Makes the log's days ahead; until that worked once, the service is not ready.
fn keep_log(engine: &Arc<Engine>, process: &Process) {
    let kept = Arc::new(AtomicBool::new(false));
    let seen = kept.clone();
    process.health.add("delivery log", move || {
        let kept = seen.load(Ordering::Relaxed);
        async move { kept.then_some(()).ok_or_else(|| "has no room for today yet".to_owned()) }
    });
    let engine = engine.clone();
    process.tasks.spawn("delivery log", |stop| async move {
        let mut backoff = patience();
        while !stop.is_cancelled() {
            let pause = match keep_log_once(&engine).await {
                Ok(()) => {
                    kept.store(true, Ordering::Relaxed);
                    backoff.reset();
                    LOG_EVERY
                }
                Err(error) => {
                    tracing::warn!(error = chain(&error), "the delivery log was not kept");
                    pause_after_failure(kept.load(Ordering::Relaxed), &mut backoff)
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    });
}

/// Once there is room for days to come there is no hurry: everybody who writes waits while a day is
/// made or dropped behind somebody who reads for long.
fn pause_after_failure(kept: bool, backoff: &mut Backoff) -> Duration {
    if kept { LOG_EVERY } else { backoff.pause() }
}

async fn keep_log_once(engine: &Engine) -> Result<(), DatabaseError> {
    let log = Log { retention_days: engine.settings.retention_days };
    let now = engine.clock.now();
    log.keep(&mut *engine.pool.get().await?, now).await?;
    delete_older_than(&engine.pool, "delivery_counts", "hour", now - COUNTS_KEPT).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_to_come_are_not_made_in_a_hurry() {
        assert!(pause_after_failure(false, &mut patience()) < Duration::from_secs(1));
        assert_eq!(pause_after_failure(true, &mut patience()), LOG_EVERY);
    }
}
