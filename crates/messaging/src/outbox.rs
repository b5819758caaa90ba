//! Transactional outbox: a service inserts an event in the transaction that causes it.
//!
//! The relay moves a row to the published events only after the broker confirmed that the event is in
//! every queue bound to it. A relay that dies in between publishes the event again, under the same id.
//!
//! See docs/decisions/outbox-and-relay.md.

mod age;
mod cursor;
mod erase;
mod error;
mod event_row;
mod published;
mod relay;
mod republisher;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::event::Event;
use platform::{
    Timestamp,
    database::{DatabaseError, SqlStatement, prepared, sql, wake_after_commit},
};
use tokio::sync::Notify;
use uuid::Uuid;

pub use self::erase::erase_events;
pub(crate) use self::{age::report_age, relay::Relay};
use crate::envelope::Envelope;

/// The outbox of one service.
#[derive(Clone)]
pub struct Outbox {
    service: &'static str,
    wake: Arc<Notify>,
}

impl Outbox {
    pub fn new(service: &'static str) -> Self {
        Self { service, wake: Arc::new(Notify::new()) }
    }

    /// Inserts events in the caller's transaction. They are published if it commits. The connection is
    /// shared, so that the caller can send the statement together with others.
    pub async fn append<E: Event>(
        &self,
        conn: &AsyncPgConnection,
        now: Timestamp,
        events: impl IntoIterator<Item = E>,
    ) -> Result<(), DatabaseError> {
        let events: Result<Vec<_>, _> =
            events.into_iter().map(|event| self.serialize(now, &event)).collect();
        self.append_serialized(conn, now, &events?).await
    }

    /// Inserts events from [`Outbox::serialize`], as [`Outbox::append`] does.
    pub async fn append_serialized(
        &self,
        mut conn: &AsyncPgConnection,
        now: Timestamp,
        events: &[SerializedEvent],
    ) -> Result<(), DatabaseError> {
        if events.is_empty() {
            return Ok(());
        }
        prepared(self.append_to_sql("", "true", now, events)).execute(&mut conn).await?;
        self.wake_relay();
        Ok(())
    }

    /// Serializes an event that is inserted later. The event belongs to the current trace.
    pub fn serialize<E: Event>(
        &self,
        now: Timestamp,
        event: &E,
    ) -> Result<SerializedEvent, DatabaseError> {
        let envelope = Envelope::new(self.service, now, event);
        let body = serde_json::to_string(&envelope)
            .map_err(|e| diesel::result::Error::SerializationError(e.into()))?;
        Ok(SerializedEvent { id: envelope.id, routing_key: E::TYPE, body })
    }

    /// Returns one statement that runs the caller's `WITH` clause and inserts `events`, in order,
    /// if `condition` is true.
    ///
    /// The insert uses the parameters `$1` to `$4`, which are bound here. The caller binds its own
    /// from `$5` on. PostgreSQL evaluates the condition before it draws the events' sequence
    /// numbers: if the condition reads a query of the `WITH` clause that waits for row locks, the
    /// numbers are drawn after the wait.
    ///
    /// The statement returns the number of events inserted. Call [`Outbox::wake_relay`] after it.
    pub fn append_to_sql<'a>(
        &self,
        with: &str,
        condition: &str,
        now: Timestamp,
        events: impl IntoIterator<Item = &'a SerializedEvent>,
    ) -> SqlStatement<'a> {
        let mut ids = Vec::new();
        let mut routing_keys = Vec::new();
        let mut bodies = Vec::new();
        for event in events {
            ids.push(event.id);
            routing_keys.push(event.routing_key);
            bodies.push(event.body.as_str());
        }
        sql(
            format!(
                "{with} INSERT INTO outbox (event_id, routing_key, event, created_at) \
             SELECT event_id, routing_key, event, $4 \
             FROM unnest($1, $2, $3) AS new (event_id, routing_key, event) \
             WHERE {condition}"
            ),
            (ids, routing_keys, bodies, now),
        )
    }

    /// Makes the relay poll when the current transaction has committed.
    pub fn wake_relay(&self) {
        wake_after_commit(&self.wake);
    }
}

/// An event in JSON, ready to be inserted into the outbox.
#[derive(Debug, Clone)]
pub struct SerializedEvent {
    id: Uuid,
    routing_key: &'static str,
    body: String,
}
