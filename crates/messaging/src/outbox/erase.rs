//! Erases personal data in events that wait in the outbox or are kept.

use std::sync::LazyLock;

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use platform::{
    Timestamp,
    database::{DatabaseError, parts_by_bytes, prepared, sql},
};
use serde::ser::Error as _;
use serde_json::Value;

use crate::envelope::Envelope;

/// The subject of an event as JSON writes it; the expression of the index on kept events.
const SUBJECT: &str = r#"substring(event FROM '"subject":"((?:[^"\\]|\\.)*)"')"#;

/// Rows of the outbox that one statement searches: the outbox has no index on the subject, and millions of rows
/// after an outage of the broker.
const OUTBOX_PAGE: i64 = 10_000;

platform::rows! {
    struct LastRow {
        last: Option<i64>,
    }

    struct Key {
        at: Timestamp,
        sequence: i64,
        bytes: i32,
    }

    struct Row {
        at: Timestamp,
        sequence: i64,
        event: String,
    }
}

const PAGE_END: &str = "SELECT max(sequence) AS last FROM ( \
    SELECT sequence FROM outbox WHERE sequence > $1 ORDER BY sequence LIMIT $2 \
    ) AS page";
/// Waits for a relay that is moving one of the events; such an event is then among the kept ones.
static WAITING: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT created_at AS at, sequence, octet_length(event) AS bytes FROM outbox \
         WHERE {SUBJECT} = ANY ($1) AND sequence > $2 AND sequence <= $3 \
         ORDER BY sequence FOR UPDATE"
    )
});
/// `LATERAL` uses the index on the subject for each of them. With `OFFSET`, it stays a subquery: the planner could join
/// the whole table otherwise.
static KEPT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT kept.* FROM unnest($1) AS wanted (subject), LATERAL ( \
             SELECT published_at AS at, sequence, octet_length(event) AS bytes \
             FROM published_events WHERE {SUBJECT} = wanted.subject OFFSET 0 \
         ) AS kept"
    )
});

/// The statements that read and update events of one table by their keys. An update names the keys by arrays too:
/// a plan with only the join, made while the table was empty, would read the whole table. The events of one batch of
/// the relay have the same time. `LIMIT` keeps a `LATERAL` subquery from becoming a join with the whole table.
struct Table {
    read: &'static str,
    update: &'static str,
}

const OUTBOX: Table = Table {
    read: "SELECT own.* FROM unnest($1, $2) AS wanted (at, sequence), LATERAL ( \
        SELECT created_at AS at, sequence, event FROM outbox WHERE sequence = wanted.sequence \
        LIMIT 1) AS own",
    update: "UPDATE outbox SET event = new.event \
        FROM unnest($1, $2, $3) AS new (at, sequence, event) \
        WHERE outbox.sequence = ANY ($2) AND outbox.sequence = new.sequence",
};
const PUBLISHED: Table = Table {
    read: "SELECT own.* FROM unnest($1, $2) AS wanted (at, sequence), LATERAL ( \
        SELECT published_at AS at, sequence, event FROM published_events AS kept \
        WHERE kept.published_at = wanted.at AND kept.sequence = wanted.sequence \
        LIMIT 1) AS own",
    update: "UPDATE published_events AS kept SET event = new.event \
        FROM unnest($1, $2, $3) AS new (at, sequence, event) \
        WHERE kept.published_at = ANY ($1) AND kept.sequence = ANY ($2) \
        AND kept.published_at = new.at AND kept.sequence = new.sequence",
};

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
    let mut after = 0;
    while let Some(last) = end_of_page(conn, after).await? {
        let query = sql(&*WAITING, (&subjects, after, last));
        let found = prepared(query).load(conn).await?;
        changed += erase_rows(conn, &OUTBOX, &found, &erase).await?;
        after = last;
    }
    let query = sql(&*KEPT, &subjects);
    let found = prepared(query).load(conn).await?;
    Ok(changed + erase_rows(conn, &PUBLISHED, &found, &erase).await?)
}

/// The sequence number of the last event of the next page of the outbox.
async fn end_of_page(
    conn: &mut AsyncPgConnection,
    after: i64,
) -> Result<Option<i64>, DatabaseError> {
    let query = sql(PAGE_END, (after, OUTBOX_PAGE));
    let row: LastRow = prepared(query).get_result(conn).await?;
    Ok(row.last)
}

/// Erases events in parts: those of one order may have hundreds of megabytes together.
async fn erase_rows(
    conn: &mut AsyncPgConnection,
    table: &Table,
    found: &[Key],
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let mut changed = 0;
    for part in parts_by_bytes(found, |key| usize::try_from(key.bytes).unwrap_or_default()) {
        let (times, sequences): (Vec<_>, Vec<_>) =
            part.iter().map(|key| (key.at, key.sequence)).unzip();
        let query = sql(table.read, (times, sequences));
        let rows: Vec<Row> = prepared(query).load(conn).await?;
        let mut erased = Vec::new();
        for row in &rows {
            erased.extend(erased_event(row, &erase)?);
        }
        changed += erased.len();
        write(conn, table.update, erased).await?;
    }
    Ok(changed)
}

/// A text as JSON writes it, without quotation marks.
fn as_json(text: &str) -> serde_json::Result<String> {
    let quoted = serde_json::to_string(text)?;
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    // An empty text would be found in every event.
    let inner = inner.ok_or_else(|| serde_json::Error::custom("a text without quotation marks"))?;
    Ok(inner.to_owned())
}

/// A row of the outbox or of the kept events, and its event without the erased data.
struct ErasedEvent {
    at: Timestamp,
    sequence: i64,
    event: String,
}

/// The event with erased data; `None` if nothing changes.
fn erased_event(
    row: &Row,
    erase: impl Fn(&mut Value),
) -> Result<Option<ErasedEvent>, DatabaseError> {
    // The relay and consumers reject an unreadable event. It is not one of ours.
    let Ok(before) = serde_json::from_str::<Envelope<Value>>(&row.event) else { return Ok(None) };
    let mut after = before.clone();
    erase(&mut after.data);
    if after == before {
        return Ok(None);
    }
    let event = serde_json::to_string(&after)
        .map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
    Ok(Some(ErasedEvent { at: row.at, sequence: row.sequence, event }))
}

async fn write(
    conn: &mut AsyncPgConnection,
    update: &str,
    rows: Vec<ErasedEvent>,
) -> Result<(), DatabaseError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut times = Vec::new();
    let mut sequences = Vec::new();
    let mut events = Vec::new();
    for ErasedEvent { at, sequence, event } in rows {
        times.push(at);
        sequences.push(sequence);
        events.push(event);
    }
    let statement = sql(update, (times, sequences, events));
    prepared(statement).execute(conn).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
