//! How late the messages that are due are, for the metrics.
//!
//! Messages wait here and not in the broker's queues, so the age of the oldest is asked of the
//! ledger, by every replica and apart from the dispatcher: one that hangs could not say so itself.
//! What waits for an endpoint that is paused or gone is not late.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Double, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::message_kind::MessageKind;
use opentelemetry::KeyValue;
use platform::{
    Process, Timestamp, chain, database::DatabaseError, telemetry, telemetry::AgeGauge,
};

use crate::engine::Engine;

/// The whole ledger is read for it, so not too often.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Shows, for each kind, for how long the oldest message has been due.
pub(crate) fn watch(engine: &Arc<Engine>, process: &Process) {
    let gauge = telemetry::meter()
        .f64_gauge("delivery_oldest_due_seconds")
        .with_description(
            "For how long the oldest message that can be sent has been due; 0 when none is",
        )
        .build();
    let labels = engine.kinds.iter().map(|kind| vec![KeyValue::new("kind", kind.name())]);
    let (engine, ages) = (engine.clone(), Arc::new(AgeGauge::new(gauge, labels.collect())));
    process.tasks.spawn_interval("backlog", LOOK_EVERY, move || {
        let (engine, ages) = (engine.clone(), ages.clone());
        async move {
            let late = oldest(&engine).await.inspect_err(|error| {
                tracing::debug!(error = chain(error), "the ledger was not seen");
            });
            let of = |late: &HashMap<String, f64>, kind: &MessageKind| {
                late.get(kind.name()).copied().unwrap_or_default()
            };
            ages.show(
                late.ok().map(|late| engine.kinds.iter().map(|kind| of(&late, kind)).collect()),
            );
        }
    });
}

#[derive(QueryableByName)]
struct Late {
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Double)]
    seconds: f64,
}

async fn oldest(engine: &Engine) -> Result<HashMap<String, f64>, DatabaseError> {
    let (merchants, kinds) = engine.paused();
    let mut conn = engine.pool.get().await?;
    late(&mut conn, engine.clock.now(), (&merchants, &kinds)).await
}

async fn late(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    (merchants, kinds): (&[String], &[String]),
) -> Result<HashMap<String, f64>, DatabaseError> {
    let late: Vec<Late> = sql_query(
        "SELECT kind, greatest(0, extract(epoch FROM $1 - min(due_at)))::float8 AS seconds \
         FROM deliveries LEFT JOIN delivery_endpoints AS known USING (merchant, kind) \
         WHERE state = 'ready' AND known.disabled_at_version IS NULL \
         AND (merchant, kind) NOT IN (SELECT * FROM unnest($2, $3)) GROUP BY kind",
    )
    .bind::<Timestamptz, _>(now)
    .bind::<Array<Text>, _>(merchants)
    .bind::<Array<Text>, _>(kinds)
    .load(conn)
    .await?;
    Ok(late.into_iter().map(|late| (late.kind, late.seconds)).collect())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use diesel_async::SimpleAsyncConnection;

    use super::*;

    #[tokio::test]
    async fn what_waits_for_an_endpoint_that_is_paused_or_gone_is_not_late() {
        let database = testkit::Database::create(vec![crate::MIGRATIONS]).await;
        let mut conn = database.pool().get().await.unwrap();
        conn.batch_execute(
            "INSERT INTO deliveries (id, merchant, kind, sequence, state, due_at) \
             SELECT gen_random_uuid(), merchant, kind, 1, state, to_timestamp(seconds) \
             FROM (VALUES ('paused', 'rma', 'ready', 100), ('gone', 'rma', 'ready', 200), \
             ('open', 'rma', 'ready', 900), ('open', 'rma', 'queued', 300), \
             ('paused', 'exchange-order', 'ready', 800), ('gone', 'outbound-asn', 'held', 100)) \
             AS row (merchant, kind, state, seconds); \
             INSERT INTO delivery_endpoints VALUES ('gone', 'rma', 1, 1, 0, 0, now(), 7), \
             ('open', 'rma', 1, 1, 0, 0, now(), NULL)",
        )
        .await
        .unwrap();
        let now = Timestamp::UNIX_EPOCH + TimeDelta::seconds(1000);
        let paused = (&["paused".to_owned()][..], &["rma".to_owned()][..]);
        let late = late(&mut conn, now, paused).await.unwrap();
        let wanted = [("rma".to_owned(), 100.0), ("exchange-order".to_owned(), 200.0)];
        assert_eq!(late, HashMap::from(wanted));
    }
}
