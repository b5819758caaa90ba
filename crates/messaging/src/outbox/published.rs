//! Published events, kept for some days in partitions so that they can be published again.
//!
//! The relay moves an event here in the statement that deletes it from the outbox. The outbox
//! stays small, and the relay never reads past published events.

use diesel::QueryableByName;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use platform::{
    MAX_BATCH_BYTES, Timestamp,
    database::{DatabaseError, prepared, sql},
};

use uuid::Uuid;

use super::event_row::EventRow;

const MOVE: &str = include_str!("move_published_events.sql");

/// Confirmed events that are still in the outbox.
const LEFT: &str = "\
    SELECT sequence, event_id FROM outbox WHERE sequence = ANY ($1) AND event_id = ANY ($2)";

platform::rows! {
    struct LeftEvent {
        sequence: i64,
        event_id: Uuid,
    }
}

/// Events that the broker confirmed and that are still in the outbox, as far as this process knows.
///
/// The relay keeps them until they are moved: while a move fails (a full disk, a standby) or an erasure has locked
/// some of them, it repeats only the move and publishes nothing again. Until the restore check has run, sequence
/// numbers may repeat, so the events are compared by id too.
#[derive(Default)]
pub(super) struct ConfirmedEvents {
    sequences: Vec<i64>,
    ids: Vec<Uuid>,
}

impl ConfirmedEvents {
    pub(super) fn push(&mut self, row: &EventRow) {
        self.sequences.push(row.sequence);
        self.ids.push(row.event_id);
    }

    pub(super) fn sequences(&self) -> &[i64] {
        &self.sequences
    }

    /// Moves the events from the outbox to the published events, and forgets them. Those that another
    /// transaction has locked stay for the next move.
    pub(super) async fn move_free(
        &mut self,
        conn: &mut AsyncPgConnection,
    ) -> Result<(), DatabaseError> {
        if self.sequences.is_empty() {
            return Ok(());
        }
        let statement = sql(MOVE, (&self.sequences, &self.ids));
        let moved = prepared(statement).execute(conn).await?;
        let left = if moved == self.sequences.len() {
            Vec::new()
        } else {
            let query = sql(LEFT, (&self.sequences, &self.ids));
            prepared(query).load::<LeftEvent>(conn).await?
        };
        (self.sequences, self.ids) = left.iter().map(|row| (row.sequence, row.event_id)).unzip();
        Ok(())
    }
}

platform::rows! { struct Partition { name: String } }

const MAINTAIN: &str = "\
    SELECT name \
    FROM maintain_published_events((now() AT TIME ZONE 'UTC')::date, $1) AS dropped (name)";

/// Creates the partitions of the coming days and drops the expired ones.
pub(super) async fn maintain(
    conn: &mut AsyncPgConnection,
    retention_days: u16,
) -> Result<(), DatabaseError> {
    let query = sql(MAINTAIN, i32::from(retention_days));
    for Partition { name } in query.load::<Partition>(conn).await? {
        tracing::info!(partition = name, "dropped partition {name}");
    }
    Ok(())
}

platform::rows! {
    /// A published event and its position among all.
    pub(super) struct PublishedEvent {
        pub(super) published_at: Timestamp,
        #[diesel(embed)]
        pub(super) row: EventRow,
    }
}

const READ_AFTER: &str = include_str!("read_published_events.sql");

/// Reads up to `limit` events after a position, in the order of their publication, fewer if they
/// reach [`MAX_BATCH_BYTES`].
pub(super) async fn read_after(
    conn: &mut AsyncPgConnection,
    (published_at, sequence): (Timestamp, i64),
    until: Timestamp,
    limit: i64,
) -> Result<Vec<PublishedEvent>, DatabaseError> {
    let query = sql(
        READ_AFTER,
        (published_at, sequence, until, limit, i64::try_from(MAX_BATCH_BYTES).unwrap_or(i64::MAX)),
    );
    Ok(prepared(query).load(conn).await?)
}
