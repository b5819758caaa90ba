//! Age of the oldest due delivery.

use std::collections::HashMap;

use diesel::sql_types::{Array, Double, Nullable, Text, Timestamptz};
use diesel::{OptionalExtension as _, QueryableByName, sql_query};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};

#[derive(QueryableByName)]
struct AgeOfKind {
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Double)]
    seconds: f64,
}

/// The delivery that has been due for the longest time.
#[derive(Debug, PartialEq, Eq, QueryableByName)]
pub(crate) struct OldestDue {
    #[diesel(sql_type = Text)]
    pub(crate) merchant: String,
    #[diesel(sql_type = Text)]
    pub(crate) kind: String,
    #[diesel(sql_type = Timestamptz)]
    pub(crate) due_at: Timestamp,
}

/// The index skips from endpoint to endpoint, so that a large backlog of one costs nothing.
const OLDEST_DUE: &str = "WITH RECURSIVE endpoints (merchant, kind) AS ( \
     (SELECT merchant, kind FROM deliveries ORDER BY merchant, kind LIMIT 1) \
     UNION ALL \
     SELECT next.merchant, next.kind FROM endpoints, LATERAL ( \
         SELECT row.merchant, row.kind FROM deliveries AS row \
         WHERE (row.merchant, row.kind) > (endpoints.merchant, endpoints.kind) \
         ORDER BY row.merchant, row.kind LIMIT 1 \
     ) AS next \
 ) \
 SELECT endpoints.merchant, endpoints.kind, oldest.due_at FROM endpoints, LATERAL ( \
     SELECT next_attempt_at AS due_at FROM deliveries AS row \
     WHERE row.merchant = endpoints.merchant AND row.kind = endpoints.kind \
     AND row.state = 'ready' AND row.next_attempt_at <= $1 ORDER BY next_attempt_at LIMIT 1 \
 ) AS oldest \
 WHERE ($2::text IS NULL OR endpoints.merchant = $2) \
 AND (endpoints.merchant, endpoints.kind) NOT IN (SELECT * FROM unnest($3, $4)) \
 AND NOT EXISTS ( \
     SELECT FROM delivery_endpoints AS disabled WHERE disabled.merchant = endpoints.merchant \
     AND disabled.kind = endpoints.kind AND disabled.disabled_at IS NOT NULL \
 ) ORDER BY due_at LIMIT 1";

/// Returns the oldest due delivery of one merchant or of all. Deliveries to paused and disabled endpoints
/// do not count.
pub(crate) async fn oldest_due(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    merchant: Option<&str>,
    (paused_merchants, paused_kinds): (&[String], &[String]),
) -> Result<Option<OldestDue>, DatabaseError> {
    Ok(sql_query(OLDEST_DUE)
        .bind::<Timestamptz, _>(now)
        .bind::<Nullable<Text>, _>(merchant)
        .bind::<Array<Text>, _>(paused_merchants)
        .bind::<Array<Text>, _>(paused_kinds)
        .get_result(conn)
        .await
        .optional()?)
}

/// Returns for each kind how long its oldest ready delivery has been due. Deliveries to paused and
/// disabled endpoints do not count.
pub(crate) async fn oldest_due_seconds(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    (paused_merchants, paused_kinds): (&[String], &[String]),
) -> Result<HashMap<String, f64>, DatabaseError> {
    let oldest: Vec<AgeOfKind> = sql_query(
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
        let seconds = |seconds| Timestamp::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let mut due = async |merchant: Option<&str>, now| {
            let found = oldest_due(&mut conn, now, merchant, paused).await.unwrap();
            found.map(|it| (it.merchant, it.kind, it.due_at))
        };
        let expected = ("paused".to_owned(), "exchange-order".to_owned(), seconds(800));
        assert_eq!(due(None, now).await, Some(expected));
        let expected = ("open".to_owned(), "rma".to_owned(), seconds(900));
        assert_eq!(due(Some("open"), now).await, Some(expected));
        assert_eq!(due(None, seconds(500)).await, None);
    }
}
