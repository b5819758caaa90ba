//! Transactions in which events are handled.

use std::panic::AssertUnwindSafe;

use diesel_async::SimpleAsyncConnection as _;
use futures_util::FutureExt;
use opentelemetry::KeyValue;
use platform::{
    ErrorKind, Failure, chain,
    database::{lock_timed_out, timed_out},
    retry::Backoff,
    telemetry,
};
use tracing::Instrument;

use super::{Consumer, Delivered, MAX_BACKOFF, MIN_BACKOFF};
use crate::handler::HandleError;

/// Statement timeouts after which a batch counts as failed.
const MAX_TIMEOUTS: u32 = 3;

#[derive(Debug, thiserror::Error)]
#[error("the handler panicked")]
struct Panicked;

impl Failure for Panicked {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Internal
    }
}

/// Reason why events were not handled.
pub(super) enum Unhandled {
    ShuttingDown,
    /// Another transaction has locked a row that the events need.
    Locked,
    /// The events are too large for this queue, and another takes large ones.
    TooLarge,
    Failed(HandleError),
}

impl Consumer {
    /// Handles events in one transaction. Retries while the database is unavailable.
    pub(super) async fn handle(
        &self,
        events: &[Delivered],
        lock_wait: &str,
    ) -> Result<(), Unhandled> {
        let Some(first) = events.first() else { return Ok(()) };
        let span = tracing::info_span!(
            "handle",
            otel.kind = "consumer",
            queue = self.inbox.queue,
            event.id = %first.event.id,
            events = events.len(),
        );
        // The span belongs to the first event's trace and links to the others.
        telemetry::set_parent(&span, first.event.traceparent.as_deref());
        for event in events.iter().skip(1) {
            event.event.traceparent.iter().for_each(|parent| telemetry::link(&span, parent));
        }
        self.retry_transaction(events, lock_wait).instrument(span).await?;
        self.record_handled(events);
        Ok(())
    }

    async fn retry_transaction(
        &self,
        events: &[Delivered],
        lock_wait: &str,
    ) -> Result<(), Unhandled> {
        let mut backoff = Backoff::new(MIN_BACKOFF, MAX_BACKOFF);
        let mut timeouts = 0;
        loop {
            let Err(error) = self.run_transaction(events, lock_wait).await else { return Ok(()) };
            timeouts += u32::from(timed_out(error.0.as_ref()));
            if lock_timed_out(error.0.as_ref()) {
                return Err(Unhandled::Locked);
            }
            if error.0.kind() == ErrorKind::TooLarge && self.large_queue.is_some() {
                return Err(Unhandled::TooLarge);
            }
            if error.0.kind() != ErrorKind::Unavailable || timeouts >= MAX_TIMEOUTS {
                return Err(Unhandled::Failed(error));
            }
            tracing::warn!(error = chain(error.0.as_ref()), "events not handled; retrying");
            tokio::select! {
                () = self.stop.cancelled() => return Err(Unhandled::ShuttingDown),
                () = tokio::time::sleep(backoff.pause()) => {}
            }
        }
    }

    async fn run_transaction(
        &self,
        events: &[Delivered],
        lock_wait: &str,
    ) -> Result<(), HandleError> {
        let mut conn = self.inbox.pool.get().await?;
        let events: Vec<_> = events.iter().map(|event| &event.event).collect();
        conn.transaction(async |conn| {
            conn.batch_execute(lock_wait).await?;
            let ids = events.iter().map(|event| event.id).collect();
            let mut new = self.inbox.insert_new(conn, ids).await?;
            let events = events.iter().copied();
            let events: Vec<_> = events.filter(|event| new.remove(&event.id)).collect();
            if events.is_empty() {
                return Ok(());
            }
            // A panic that ended the process would return all prefetched events to the queue and
            // raise their delivery counts. Caught here, it fails only these events.
            let handling = AssertUnwindSafe(self.handler.handle(conn, &events)).catch_unwind();
            handling.await.unwrap_or_else(|_panic| Err(Panicked.into()))
        })
        .await?;
        self.handler.after_commit(&events)
    }

    fn record_handled(&self, events: &[Delivered]) {
        self.count("handled", events.len());
        let now = self.inbox.clock.now();
        let queue = [KeyValue::new("queue", self.inbox.queue.clone())];
        for event in events {
            self.lag.record((now - event.event.time).as_seconds_f64().max(0.0), &queue);
        }
    }
}
