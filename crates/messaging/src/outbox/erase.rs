//! Erases personal data in events that wait in the outbox or are kept.

use std::sync::LazyLock;

use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use platform::{
    Timestamp,
    database::{DatabaseError, prepared},
};
use serde_json::Value;

use crate::envelope::Envelope;

/// The subject of an event as JSON writes it; the expression of the index on kept events.
const SUBJECT: &str = r#"substring(event FROM '"subject":"((?:[^"\\]|\\.)*)"')"#;

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Timestamptz)]
    at: Timestamp,
    #[diesel(sql_type = BigInt)]
    sequence: i64,
    #[diesel(sql_type = Text)]
    event: String,
}

/// Waits for a relay that is moving one of the events; such an event is then among the kept ones.
static WAITING: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT created_at AS at, sequence, event FROM outbox \
         WHERE {SUBJECT} = ANY ($1) ORDER BY sequence FOR UPDATE"
    )
});
/// `LATERAL` uses the index on the subject for each of them.
static KEPT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT kept.* FROM unnest($1) AS wanted (subject), LATERAL ( \
             SELECT published_at AS at, sequence, event FROM published_events \
             WHERE {SUBJECT} = wanted.subject \
         ) AS kept"
    )
});
const UPDATE_WAITING: &str = "\
    UPDATE outbox SET event = new.event FROM unnest($1, $2, $3) AS new (at, sequence, event) \
    WHERE outbox.sequence = new.sequence";
const UPDATE_KEPT: &str = "\
    UPDATE published_events AS kept SET event = new.event \
    FROM unnest($1, $2, $3) AS new (at, sequence, event) \
    WHERE kept.published_at = new.at AND kept.sequence = new.sequence";

/// Applies `erase` to the data of all events with these subjects, in the caller's transaction. Returns the
/// number of events that changed. The outbox is first, because the relay moves events to the kept ones.
pub async fn erase_events(
    conn: &mut AsyncPgConnection,
    subjects: &[String],
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let subjects: Result<Vec<_>, _> = subjects.iter().map(|it| as_json(it)).collect();
    let subjects = subjects.map_err(|e| diesel::result::Error::SerializationError(e.into()))?;
    if subjects.is_empty() {
        return Ok(0);
    }
    let mut changed = 0;
    for (select, update) in [(&*WAITING, UPDATE_WAITING), (&*KEPT, UPDATE_KEPT)] {
        let query = diesel::sql_query(select).bind::<Array<Text>, _>(&subjects);
        let found: Vec<Row> = prepared(query).load(conn).await?;
        let erased: Vec<_> = found.iter().filter_map(|row| erased(row, &erase)).collect();
        changed += erased.len();
        write(conn, update, erased).await?;
    }
    Ok(changed)
}

/// A text as JSON writes it, without quotation marks.
fn as_json(text: &str) -> serde_json::Result<String> {
    let quoted = serde_json::to_string(text)?;
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    Ok(inner.unwrap_or_default().to_owned())
}

/// The event with erased data; `None` if nothing changes.
fn erased(row: &Row, erase: impl Fn(&mut Value)) -> Option<(Timestamp, i64, String)> {
    // The relay and consumers reject an unreadable event. It is not one of ours.
    let before: Envelope<Value> = serde_json::from_str(&row.event).ok()?;
    let mut after = before.clone();
    erase(&mut after.data);
    let event = (after != before).then(|| serde_json::to_string(&after).ok()).flatten()?;
    Some((row.at, row.sequence, event))
}

async fn write(
    conn: &mut AsyncPgConnection,
    update: &str,
    rows: Vec<(Timestamp, i64, String)>,
) -> Result<(), DatabaseError> {
    if rows.is_empty() {
        return Ok(());
    }
    let (mut times, mut sequences, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for (at, sequence, event) in rows {
        times.push(at);
        sequences.push(sequence);
        events.push(event);
    }
    let statement = diesel::sql_query(update)
        .bind::<Array<Timestamptz>, _>(times)
        .bind::<Array<BigInt>, _>(sequences)
        .bind::<Array<Text>, _>(events);
    prepared(statement).execute(conn).await?;
    Ok(())
}
