//! Daily partitions of the message history: created in advance, dropped after the retention time.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error as QueryError};
use diesel::{dsl::exists, select};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use platform::{
    Timestamp,
    database::{DatabaseError, retention_time},
};
use uuid::Uuid;

use super::schema::deliveries;

const DAYS_AHEAD: u64 = 7;
/// Time to wait for a lock on a whole table. Queries that arrive meanwhile wait as long.
const LOCK_TIMEOUT: &str = "500ms";
const TABLES: [&str; 2] = ["delivery_messages", "delivery_attempts"];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Partitions {
    pub(crate) retention_days: u32,
}

platform::rows! { struct Partition { name: String } }

impl Partitions {
    /// Creates the partitions of the coming days and drops the expired ones.
    pub(crate) async fn maintain(
        self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let today = now.date_naive();
        // Yesterday too: the clock of another replica may be behind.
        let first = today.pred_opt().unwrap_or(today);
        for day in first.iter_days().take(usize::try_from(DAYS_AHEAD + 1).unwrap_or_default()) {
            for table in TABLES {
                create(conn, table, day).await?;
            }
        }
        // The database's clock decides about the loss of data.
        let today = retention_time(conn, now).await?.date_naive();
        let Some(oldest) = today.checked_sub_days(Days::new(self.retention_days.into())) else {
            return Ok(());
        };
        for partition in partitions(conn).await? {
            if day_of(&partition).is_some_and(|day| day < oldest) {
                drop_unless_needed(conn, &partition).await?;
            }
        }
        Ok(())
    }
}

/// Returns the smallest id of a message created at this time or later.
pub(crate) fn min_id_at(at: Timestamp) -> Uuid {
    let millis = u128::try_from(at.timestamp_millis()).unwrap_or_default();
    Uuid::from_u128(millis << 80)
}

fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

/// Returns the smallest id of this day and of the day after.
fn id_range(day: NaiveDate) -> (Uuid, Uuid) {
    let next = day.succ_opt().unwrap_or(day);
    (min_id_at(midnight(day)), min_id_at(midnight(next)))
}

async fn create(
    conn: &mut AsyncPgConnection,
    table: &str,
    day: NaiveDate,
) -> Result<(), DatabaseError> {
    let suffix = day.format("%Y%m%d");
    let (from, to) = id_range(day);
    Ok(conn
        .batch_execute(&format!(
            "SET lock_timeout = '{LOCK_TIMEOUT}'; \
             CREATE TABLE IF NOT EXISTS {table}_{suffix} PARTITION OF {table} \
             FOR VALUES FROM ('{from}') TO ('{to}'); \
             RESET lock_timeout"
        ))
        .await?)
}

/// Returns the partitions of messages before those of attempts: a message without attempts would
/// look unsettled.
async fn partitions(conn: &mut AsyncPgConnection) -> Result<Vec<String>, DatabaseError> {
    let children: Vec<Partition> = diesel::sql_query(
        "SELECT child.relname::text AS name FROM pg_inherits \
         JOIN pg_class child ON child.oid = inhrelid \
         WHERE inhparent IN ('delivery_messages'::regclass, 'delivery_attempts'::regclass) \
         ORDER BY child.relname DESC",
    )
    .load(conn)
    .await?;
    Ok(children.into_iter().map(|partition| partition.name).collect())
}

fn day_of(partition: &str) -> Option<NaiveDate> {
    let (_, day) = partition.rsplit_once('_')?;
    NaiveDate::parse_from_str(day, "%Y%m%d").ok()
}

/// Drops a partition unless one of its messages is unsettled, for example at a paused endpoint.
///
/// The first check avoids the lock on a partition that stays. The second check runs under the lock:
/// a replay may have made a message of that day ready meanwhile.
async fn drop_unless_needed(
    conn: &mut AsyncPgConnection,
    partition: &str,
) -> Result<(), DatabaseError> {
    let Some((table, _)) = partition.rsplit_once('_') else { return Ok(()) };
    let Some(day) = day_of(partition) else { return Ok(()) };
    if has_unsettled(conn, day).await? {
        return Ok(());
    }
    let dropped = conn
        .transaction(async |conn| {
            // Readers lock the parent before the partition, so this does too.
            conn.batch_execute(&format!(
                "SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'; \
                 LOCK TABLE ONLY {table}, {partition} IN ACCESS EXCLUSIVE MODE"
            ))
            .await?;
            let needed = has_unsettled(conn, day).await?;
            if !needed {
                conn.batch_execute(&format!("DROP TABLE {partition}")).await?;
            }
            Ok::<_, DatabaseError>(!needed)
        })
        .await?;
    if dropped {
        tracing::info!(partition, "dropped partition {partition}");
    }
    Ok(())
}

async fn has_unsettled(
    conn: &mut AsyncPgConnection,
    day: NaiveDate,
) -> Result<bool, DatabaseError> {
    let (from, to) = id_range(day);
    let unsettled = deliveries::table.filter(deliveries::id.ge(from).and(deliveries::id.lt(to)));
    Ok(select(exists(unsettled)).get_result(conn).await?)
}

/// Returns whether a row was rejected because its partition does not exist. PostgreSQL reports a
/// check violation without a constraint.
pub(crate) fn is_partition_missing(error: &DatabaseError) -> bool {
    matches!(
        error,
        DatabaseError::Query(QueryError::DatabaseError(DatabaseErrorKind::CheckViolation, details))
            if details.constraint_name().is_none()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_lies_in_the_partition_of_its_day() {
        for text in
            ["2026-11-15T00:00:00Z", "2026-11-15T12:30:00.123456Z", "2026-11-15T23:59:59.999Z"]
        {
            let at: DateTime<Utc> = text.parse().unwrap();
            let (from, to) = id_range(at.date_naive());
            let id = crate::store::new_id(at);
            assert!(from <= id && id < to, "{text}");
        }
    }

    #[test]
    fn a_partition_is_named_for_its_day() {
        assert_eq!(day_of("delivery_messages_20261115"), NaiveDate::from_ymd_opt(2026, 11, 15));
        assert_eq!(day_of("delivery_messages_strange"), None);
    }
}
