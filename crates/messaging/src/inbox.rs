//! Inbox: the ids of the events that a queue's consumer has handled.

use std::{collections::HashSet, time::Duration};

use chrono::TimeDelta;
use diesel::ExpressionMethods as _;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Clock,
    database::{DatabaseError, Pool, delete_older_than},
};
use uuid::Uuid;

use crate::schema::inbox;

/// The inbox of one queue.
#[derive(Clone)]
pub(crate) struct Inbox {
    pub(crate) pool: Pool,
    pub(crate) queue: String,
    pub(crate) clock: Clock,
}

impl Inbox {
    /// Inserts event ids and returns those that are new.
    pub(crate) async fn insert_new(
        &self,
        conn: &mut AsyncPgConnection,
        mut ids: Vec<Uuid>,
    ) -> Result<HashSet<Uuid>, DatabaseError> {
        let received_at = self.clock.now();
        // Sorted, so that concurrent inserts do not deadlock.
        ids.sort_unstable();
        ids.dedup();
        let row = |id| {
            let queue = inbox::queue.eq(&self.queue);
            (queue, inbox::event_id.eq(id), inbox::received_at.eq(received_at))
        };
        let new: Vec<Uuid> = diesel::insert_into(inbox::table)
            .values(ids.into_iter().map(row).collect::<Vec<_>>())
            .on_conflict_do_nothing()
            .returning(inbox::event_id)
            .get_results(conn)
            .await?;
        Ok(new.into_iter().collect())
    }

    /// Deletes expired event ids of all queues.
    pub(crate) async fn delete_expired(&self, retention: Duration) -> Result<(), DatabaseError> {
        let age = TimeDelta::from_std(retention).unwrap_or(TimeDelta::MAX);
        delete_older_than(&self.pool, "inbox", "received_at", self.clock.now(), age).await
    }
}
