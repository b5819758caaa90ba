//! Age of the oldest due delivery.

use std::collections::HashMap;

use diesel::sql_types::{Array, Double, Text, Timestamptz};
use diesel::{QueryableByName, sql_query};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};

#[derive(QueryableByName)]
struct OldestDue {
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Double)]
    seconds: f64,
}

/// Returns for each kind how long its oldest ready delivery has been due. Deliveries to paused and
/// disabled endpoints do not count.
pub(crate) async fn oldest_due_seconds(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    (paused_merchants, paused_kinds): (&[String], &[String]),
) -> Result<HashMap<String, f64>, DatabaseError> {
    let oldest: Vec<OldestDue> = sql_query(
        "SELECT kind, \
         greatest(0, extract(epoch FROM $1 - min(next_attempt_at)))::float8 AS seconds \
         FROM deliveries LEFT JOIN delivery_endpoints AS endpoint USING (merchant, kind) \
         WHERE state = 'ready' AND endpoint.disabled_at_version IS NULL \
         AND (merchant, kind) NOT IN (SELECT * FROM unnest($2, $3)) GROUP BY kind",
    )
    .bind::<Timestamptz, _>(now)
    .bind::<Array<Text>, _>(paused_merchants)
    .bind::<Array<Text>, _>(paused_kinds)
    .load(conn)
    .await?;
    Ok(oldest.into_iter().map(|oldest| (oldest.kind, oldest.seconds)).collect())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use diesel_async::SimpleAsyncConnection;

    use super::*;

    #[tokio::test]
    async fn deliveries_to_paused_and_disabled_endpoints_are_not_overdue() {
        let database = testkit::Database::create(vec![crate::MIGRATIONS]).await;
        let mut conn = database.pool().get().await.unwrap();
        conn.batch_execute(
            "INSERT INTO deliveries \
             (id, merchant, kind, sequence, state, next_attempt_at, leased_until) \
             SELECT gen_random_uuid(), merchant, kind, 1, state, to_timestamp(seconds), \
             CASE state WHEN 'queued' THEN now() END \
             FROM (VALUES ('paused', 'rma', 'ready', 100), ('disabled', 'rma', 'ready', 200), \
             ('open', 'rma', 'ready', 900), ('open', 'rma', 'queued', 300), \
             ('paused', 'exchange-order', 'ready', 800), \
             ('disabled', 'outbound-asn', 'blocked', 100)) \
             AS row (merchant, kind, state, seconds); \
             INSERT INTO delivery_endpoints VALUES ('disabled', 'rma', 1, 1, 0, 0, now(), 7, now()), \
             ('open', 'rma', 1, 1, 0, 0, now(), NULL, NULL)",
        )
        .await
        .unwrap();
        let now = Timestamp::UNIX_EPOCH + TimeDelta::seconds(1000);
        let paused = (&["paused".to_owned()][..], &["rma".to_owned()][..]);
        let oldest = oldest_due_seconds(&mut conn, now, paused).await.unwrap();
        let expected = [("rma".to_owned(), 100.0), ("exchange-order".to_owned(), 200.0)];
        assert_eq!(oldest, HashMap::from(expected));
    }
}
