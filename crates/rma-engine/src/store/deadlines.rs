//! The times until which something must happen to returns. [`return_rows`](super::return_rows) adds them and deletes
//! those that ended.

use std::time::Duration;

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::returns::{Deadline, DeadlineKind, Period};
use platform::Timestamp;
use platform::database::{DatabaseError, column, prepared, sql};

use super::unreadable;

platform::rows! {
    struct DeadlineRow {
        merchant: String,
        rma_identifier: String,
        kind: String,
        started_at: Timestamp,
    }
}

/// A deadline of a return.
#[derive(Debug, Clone)]
pub(crate) struct StoredDeadline {
    pub(crate) merchant: MerchantId,
    pub(crate) rma_identifier: String,
    pub(crate) kind: DeadlineKind,
    pub(crate) started_at: Timestamp,
}

fn read(rows: Vec<DeadlineRow>) -> Result<Vec<StoredDeadline>, DatabaseError> {
    let stored = |row: DeadlineRow| {
        Ok(StoredDeadline {
            merchant: row.merchant.parse().map_err(unreadable)?,
            rma_identifier: row.rma_identifier,
            kind: row.kind.parse().map_err(unreadable)?,
            started_at: row.started_at,
        })
    };
    rows.into_iter().map(stored).collect()
}

platform::rows! { struct Age { milliseconds: i64 } }

/// The time since the oldest deadline was due, by the clock of the database; zero if none is due.
pub(crate) async fn oldest_due(conn: &mut AsyncPgConnection) -> Result<Duration, DatabaseError> {
    let query = diesel::sql_query(
        "SELECT coalesce(extract(epoch FROM now() - ( \
             SELECT due_at FROM return_deadlines ORDER BY due_at LIMIT 1 \
         )) * 1000, 0)::bigint AS milliseconds",
    );
    let age: Age = query.get_result(conn).await?;
    Ok(Duration::from_millis(u64::try_from(age.milliseconds).unwrap_or_default()))
}

/// Locks the oldest deadlines that are due, up to `most`. Those that another transaction has locked are ending.
pub(crate) async fn lock_due(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    most: i64,
) -> Result<Vec<StoredDeadline>, DatabaseError> {
    let query = sql(
        "SELECT merchant, rma_identifier, kind, started_at FROM return_deadlines \
         WHERE due_at <= $1 ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED",
        (now, most),
    );
    read(prepared(query).load(conn).await?)
}

/// Finds deadlines that were computed with another period than these settings have, up to `most`.
pub(crate) async fn with_other_period(
    conn: &mut AsyncPgConnection,
    kind: DeadlineKind,
    settings: &[(MerchantId, Period)],
    most: i64,
) -> Result<Vec<StoredDeadline>, DatabaseError> {
    let query = sql(
        include_str!("find_other_periods.sql"),
        (
            column(settings, |(merchant, _)| merchant.as_str()),
            column(settings, |(_, period)| i32::from(period.days)),
            column(settings, |(_, period)| period.zone.name()),
            kind.as_str(),
            most,
        ),
    );
    read(prepared(query).load(conn).await?)
}

/// Sets the times of deadlines. One that has ended meanwhile comes back, and ends when it is due.
pub(crate) async fn reschedule(
    conn: &mut AsyncPgConnection,
    rescheduled: &[(&StoredDeadline, Deadline)],
) -> Result<(), DatabaseError> {
    if rescheduled.is_empty() {
        return Ok(());
    }
    let statement = sql(
        "INSERT INTO return_deadlines \
             (merchant, rma_identifier, kind, started_at, days, zone, due_at) \
         SELECT * FROM unnest((SELECT $1), $2, $3, $4, $5, $6, $7) \
         ON CONFLICT ON CONSTRAINT return_deadlines_pkey \
         DO UPDATE SET days = excluded.days, zone = excluded.zone, due_at = excluded.due_at",
        (
            column(rescheduled, |(stored, _)| stored.merchant.as_str()),
            column(rescheduled, |(stored, _)| stored.rma_identifier.as_str()),
            column(rescheduled, |(stored, _)| stored.kind.as_str()),
            column(rescheduled, |(stored, _)| stored.started_at),
            column(rescheduled, |(_, deadline)| i32::from(deadline.period.days)),
            column(rescheduled, |(_, deadline)| deadline.period.zone.name()),
            column(rescheduled, |(_, deadline)| deadline.due_at),
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Deletes deadlines of returns that do not need them any more.
pub(crate) async fn delete(
    conn: &mut AsyncPgConnection,
    ended: &[&StoredDeadline],
) -> Result<(), DatabaseError> {
    if ended.is_empty() {
        return Ok(());
    }
    let statement = sql(
        include_str!("delete_deadlines.sql"),
        (
            column(ended, |it| it.merchant.as_str()),
            column(ended, |it| it.rma_identifier.as_str()),
            column(ended, |it| it.kind.as_str()),
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Tries locked deadlines again later.
pub(crate) async fn postpone(
    conn: &mut AsyncPgConnection,
    postponed: &[&StoredDeadline],
    until: Timestamp,
) -> Result<(), DatabaseError> {
    if postponed.is_empty() {
        return Ok(());
    }
    let statement = sql(
        include_str!("postpone_deadlines.sql"),
        (
            column(postponed, |it| it.merchant.as_str()),
            column(postponed, |it| it.rma_identifier.as_str()),
            column(postponed, |it| it.kind.as_str()),
            until,
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Tries the oldest deadline that is due again later.
pub(crate) async fn postpone_oldest(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "UPDATE return_deadlines SET due_at = $2 WHERE ctid = ANY (ARRAY ( \
             SELECT ctid FROM return_deadlines WHERE due_at <= $1 ORDER BY due_at LIMIT 1 \
             FOR UPDATE SKIP LOCKED \
         ))",
        (now, until),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}
