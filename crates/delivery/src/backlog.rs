//! How late the messages that are due are, for the metrics.
//!
//! Messages wait here and not in the broker's queues, so the age of the oldest is asked of the
//! ledger, by every replica and apart from the dispatcher: one that hangs could not say so itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Double, Text, Timestamptz},
};
use diesel_async::RunQueryDsl;
use opentelemetry::KeyValue;
use platform::{Process, chain, database::DatabaseError, telemetry};

use crate::engine::Engine;

/// The whole ledger is read for it, so not too often.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Shows, for each kind, for how long the oldest message has been due.
pub(crate) fn watch(engine: &Arc<Engine>, process: &Process) {
    let gauge = telemetry::meter()
        .f64_gauge("delivery_oldest_due_seconds")
        .with_description("For how long the oldest waiting message has been due; 0 when none is")
        .build();
    let engine = engine.clone();
    process.tasks.every("backlog", LOOK_EVERY, move || {
        let (engine, gauge) = (engine.clone(), gauge.clone());
        async move {
            match oldest(&engine).await {
                Ok(late) => {
                    for kind in &engine.kinds {
                        let seconds = late.get(kind.name()).copied().unwrap_or_default();
                        gauge.record(seconds, &[KeyValue::new("kind", kind.name())]);
                    }
                }
                Err(error) => tracing::debug!(error = chain(&error), "the ledger was not seen"),
            }
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
    let mut conn = engine.pool.get().await?;
    let late: Vec<Late> = sql_query(
        "SELECT kind, greatest(0, extract(epoch FROM $1 - min(due_at)))::float8 AS seconds \
         FROM deliveries WHERE state = 'ready' GROUP BY kind",
    )
    .bind::<Timestamptz, _>(engine.clock.now())
    .load(&mut conn)
    .await?;
    Ok(late.into_iter().map(|late| (late.kind, late.seconds)).collect())
}
