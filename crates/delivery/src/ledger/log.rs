//! The days of the log: made ahead, dropped when they are old enough and nothing needs them.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use diesel::{QueryableByName, result::Error as QueryError, sql_types::Text};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use platform::{Timestamp, database::DatabaseError};
use uuid::Uuid;

/// How many days ahead there is always room for.
const AHEAD: u64 = 7;
/// How long to wait for the lock on a whole table. Everybody who comes later waits as long.
const LOCK_TIMEOUT: &str = "500ms";
const TABLES: [&str; 2] = ["delivery_messages", "delivery_attempts"];

/// Keeps the log's partitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    /// Messages older than this are forgotten.
    pub(crate) retention_days: u32,
}

#[derive(QueryableByName)]
struct Partition {
    #[diesel(sql_type = Text)]
    name: String,
}

impl Log {
    /// Makes the days to come and drops those that are over.
    pub(crate) async fn keep(
        self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let today = now.date_naive();
        for ahead in 0..=AHEAD {
            // Yesterday's too: another replica's clock may be behind.
            let Some(day) = today.pred_opt().and_then(|day| day.checked_add_days(Days::new(ahead)))
            else {
                continue;
            };
            for table in TABLES {
                make(conn, table, day).await?;
            }
        }
        let Some(oldest) = today.checked_sub_days(Days::new(self.retention_days.into())) else {
            return Ok(());
        };
        for partition in partitions(conn).await? {
            if day_of(&partition).is_some_and(|day| day < oldest) {
                forget(conn, &partition).await?;
            }
        }
        Ok(())
    }
}

/// The smallest id that a message of this moment or later can have.
pub(crate) fn oldest_id(at: Timestamp) -> Uuid {
    let millis = u128::try_from(at.timestamp_millis()).unwrap_or_default();
    Uuid::from_u128(millis << 80)
}

fn start_of(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

async fn make(
    conn: &mut AsyncPgConnection,
    table: &str,
    day: NaiveDate,
) -> Result<(), DatabaseError> {
    let next = day.succ_opt().unwrap_or(day);
    let (name, from, to) =
        (day.format("%Y%m%d"), oldest_id(start_of(day)), oldest_id(start_of(next)));
    Ok(conn
        .batch_execute(&format!(
            "SET lock_timeout = '{LOCK_TIMEOUT}'; \
             CREATE TABLE IF NOT EXISTS {table}_{name} PARTITION OF {table} \
             FOR VALUES FROM ('{from}') TO ('{to}'); \
             RESET lock_timeout"
        ))
        .await?)
}

/// Messages before their attempts: a message without any would look as if it were under way.
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

/// Drops a day, unless a message of it is still under way: paused endpoints may take long. It asks
/// before it locks, so that a day that stays is not locked every time, and again afterwards: a replay
/// that had read the day may have put a message of it on the way.
async fn forget(conn: &mut AsyncPgConnection, partition: &str) -> Result<(), DatabaseError> {
    let Some((table, _)) = partition.rsplit_once('_') else { return Ok(()) };
    let Some(day) = day_of(partition) else { return Ok(()) };
    if is_needed(conn, day).await? {
        return Ok(());
    }
    let dropped = conn
        .transaction(async |conn| {
            // The whole before its part, as everyone who reads does.
            conn.batch_execute(&format!(
                "SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'; \
                 LOCK TABLE ONLY {table}, {partition} IN ACCESS EXCLUSIVE MODE"
            ))
            .await?;
            let needed = is_needed(conn, day).await?;
            if !needed {
                conn.batch_execute(&format!("DROP TABLE {partition}")).await?;
            }
            Ok::<_, DatabaseError>(!needed)
        })
        .await?;
    if dropped {
        tracing::info!(partition, "dropped {partition} from the delivery log");
    }
    Ok(())
}

/// Whether a message of this day is under way.
async fn is_needed(conn: &mut AsyncPgConnection, day: NaiveDate) -> Result<bool, DatabaseError> {
    let Some(next) = day.succ_opt() else { return Ok(true) };
    let any: Vec<Partition> = diesel::sql_query(
        "SELECT id::text AS name FROM deliveries WHERE id >= $1 AND id < $2 LIMIT 1",
    )
    .bind::<diesel::sql_types::Uuid, _>(oldest_id(start_of(day)))
    .bind::<diesel::sql_types::Uuid, _>(oldest_id(start_of(next)))
    .load(conn)
    .await?;
    Ok(!any.is_empty())
}

/// Whether a row belongs to a day that the log does not have.
pub(crate) fn is_forgotten(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::Query(QueryError::DatabaseError(_, information)) => {
            information.message().starts_with("no partition of relation")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_lies_in_the_day_it_was_made() {
        for text in
            ["2026-11-15T00:00:00Z", "2026-11-15T12:30:00.123456Z", "2026-11-15T23:59:59.999Z"]
        {
            let at: DateTime<Utc> = text.parse().unwrap();
            let (from, to) = (start_of(at.date_naive()), start_of(at.date_naive() + Days::new(1)));
            let id = crate::ledger::new_id(at);
            assert!(oldest_id(from) <= id && id < oldest_id(to), "{text}");
        }
    }

    #[test]
    fn a_partition_is_named_for_its_day() {
        assert_eq!(day_of("delivery_messages_20261115"), NaiveDate::from_ymd_opt(2026, 11, 15));
        assert_eq!(day_of("delivery_messages_strange"), None);
    }
}
