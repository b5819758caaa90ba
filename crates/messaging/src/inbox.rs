//! The memory of what a queue has brought: an event whose id is here has had its effect.

use std::{collections::HashSet, time::Duration};

use chrono::TimeDelta;
use diesel::{
    QueryableByName,
    sql_types::{Array, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Clock, Timestamp,
    database::{DatabaseError, Pool, delete_older_than},
};
use uuid::Uuid;

/// The event ids of one queue.
#[derive(Clone)]
pub(crate) struct Inbox {
    pub(crate) pool: Pool,
    pub(crate) queue: String,
    pub(crate) clock: Clock,
}

#[derive(QueryableByName)]
struct Remembered {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    event_id: Uuid,
}

impl Inbox {
    /// Remembers event ids; returns those that were not known.
    pub(crate) async fn remember(
        &self,
        conn: &mut AsyncPgConnection,
        ids: Vec<Uuid>,
    ) -> Result<HashSet<Uuid>, DatabaseError> {
        let now: Timestamp = self.clock.now();
        let fresh: Vec<Remembered> = diesel::sql_query(
            "INSERT INTO inbox (queue, event_id, received_at) \
             SELECT DISTINCT $1, id, $3 FROM unnest($2) AS new (id) ORDER BY id \
             ON CONFLICT DO NOTHING RETURNING event_id",
        )
        .bind::<Text, _>(&self.queue)
        .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
        .bind::<Timestamptz, _>(now)
        .load(conn)
        .await?;
        Ok(fresh.into_iter().map(|row| row.event_id).collect())
    }

    /// Forgets old event ids, of all queues: they are kept equally long.
    pub(crate) async fn forget(&self, retention: Duration) -> Result<(), DatabaseError> {
        let before = self.clock.now() - TimeDelta::from_std(retention).unwrap_or(TimeDelta::MAX);
        delete_older_than(&self.pool, "inbox", "received_at", before).await
    }
}
