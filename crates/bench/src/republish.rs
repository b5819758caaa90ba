//! A republish of all merchants from auth to a service that delivers messages at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::Namespace;

use crate::auth_process::Auth;
use crate::delivery::{DEFAULT_SETTINGS, Fixture};
use crate::postgres::Postgres;
use crate::report::Report;
use crate::size::Size;

const MERCHANTS: usize = 100_000;
/// Messages at 50 per second, before and during the republish.
const MESSAGES: usize = 1_000;
const TIMEOUT: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) async fn run(size: Size) -> anyhow::Result<Report> {
    let (merchants, messages) = (size.items(MERCHANTS), size.items(MESSAGES));
    let namespace = Arc::new(Namespace::create());
    let auth = Auth::start_in(namespace.clone()).await?;
    create_merchants(&auth, merchants).await?;
    let fixture = Fixture::start(namespace, &DEFAULT_SETTINGS).await?;
    fixture.write_batched(messages).await?;
    let mut report = Report::default();
    let before = fixture.pace(messages).await?;
    report.latencies("before.commit_to_arrival", &before.from_commit);
    let (during, seconds) =
        tokio::join!(fixture.pace(messages), republish(&auth, &fixture, merchants));
    let (during, seconds) = (during?, seconds?);
    report.latencies("during.commit_to_arrival", &during.from_commit);
    report.figure("seconds", seconds.as_secs_f64(), "s");
    let growth = during.from_commit.millis(0.99) / before.from_commit.millis(0.99);
    report.figure("p99_growth", growth, "times");
    let (memory, highest) = fixture.engine.memory()?;
    report.figure("memory", memory, "MiB");
    report.figure("memory_highest", highest, "MiB");
    Ok(report)
}

/// Creates a merchant and copies it in the database of auth.
async fn create_merchants(auth: &Auth, merchants: usize) -> anyhow::Result<()> {
    auth.create_merchant("copy-0").await?;
    let copies = format!(
        "INSERT INTO merchants \
         SELECT (jsonb_populate_record(template, jsonb_build_object('identifier', 'copy-' || n, \
             'document', jsonb_set(template.document, '{{identifier}}', to_jsonb('copy-' || n))))).* \
         FROM merchants AS template, generate_series(1, {merchants} - 1) AS n \
         WHERE template.identifier = 'copy-0'"
    );
    let mut postgres = Postgres::connect(&auth.database.url()).await?;
    postgres.execute(&copies).await?;
    postgres.execute("VACUUM ANALYZE merchants").await
}

/// Time until the service has all merchants in its replica.
async fn republish(auth: &Auth, fixture: &Fixture, merchants: usize) -> anyhow::Result<Duration> {
    let mut postgres = Postgres::connect(&fixture.database.url()).await?;
    let replicated = "SELECT count(*) FROM replica_merchants WHERE identifier LIKE 'copy-%'";
    let (started, merchants) = (Instant::now(), i64::try_from(merchants)?);
    auth.post("/v1/merchants/republish", &json!({})).await?;
    let waiting = async {
        while postgres.count(replicated).await? < merchants {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(TIMEOUT, waiting).await??;
    Ok(started.elapsed())
}
