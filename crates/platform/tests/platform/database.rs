//! Unavailable databases, abandoned transactions and the parameters of connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::sql_types::BigInt;
use diesel_async::{RunQueryDsl as _, SimpleAsyncConnection as _};
use diesel_migrations::EmbeddedMigrations;
use futures_util::FutureExt as _;
use platform::database::{
    DatabaseError, is_in_transaction, run_after_commit, timed_out, wake_after_commit,
};
use platform::{ErrorKind, Failure as _, Service as _};
use reqwest::StatusCode;
use serde_json::Value;
use testkit::{Database, Server, Servers, eventually};
use tokio::sync::Notify;

use crate::{EchoService, client, start, try_start};

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_down_gives_503_within_a_second_and_the_process_recovers() {
    let servers = tokio::task::spawn_blocking(Servers::start).await.unwrap();
    let database = Database::create_on(&servers.postgres_url(), EchoService::migrations()).await;
    let service = start(&[("DATABASE__URL", &database.url())]).await;
    let get =
        async |path: &str| client().get(format!("{}{path}", service.url)).send().await.unwrap();
    eventually("the database responds", Duration::from_secs(300), async || {
        (get("/database").await.status() == StatusCode::OK).then_some(())
    })
    .await;
    tokio::task::block_in_place(|| servers.kill(Server::Postgres));
    for _ in 0..5 {
        let started = Instant::now();
        let response = get("/database").await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(started.elapsed() < Duration::from_millis(1500), "{:?}", started.elapsed());
        assert!(response.headers().contains_key("retry-after"));
        assert_eq!(get("/readyz").await.status(), StatusCode::SERVICE_UNAVAILABLE);
        let served = get("/readyz?exclude=broker").await;
        assert_eq!(served.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(get("/healthz").await.status(), StatusCode::OK);
    }
    // The database cannot be excluded.
    assert_eq!(get("/readyz?exclude=database").await.status(), StatusCode::BAD_REQUEST);
    tokio::task::block_in_place(|| servers.start_again(Server::Postgres));
    eventually("the process has recovered", Duration::from_secs(300), async || {
        (get("/database").await.status() == StatusCode::OK).then_some(())
    })
    .await;
    assert!(service.stop().await);
    tokio::task::block_in_place(|| drop((database, servers)));
}

/// A database that can be renamed, so that clients do not find it.
struct Hidden {
    database: Database,
    /// The database in which the renaming statement runs.
    other_database: Database,
}

impl Hidden {
    async fn create(migrations: Vec<EmbeddedMigrations>) -> Self {
        let database = Database::create(migrations).await;
        let hidden = Self { database, other_database: Database::create(Vec::new()).await };
        let name = hidden.name();
        hidden.rename(&name, &format!("{name}_away")).await;
        hidden
    }

    async fn show(&self) {
        let name = self.name();
        self.rename(&format!("{name}_away"), &name).await;
    }

    fn name(&self) -> String {
        self.database.url().rsplit('/').next().unwrap().to_owned()
    }

    async fn rename(&self, from: &str, to: &str) {
        self.other_database.execute_raw(&format!("ALTER DATABASE {from} RENAME TO {to}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_are_read_from_a_database_that_starts_late() {
    let hidden = Hidden::create(EchoService::migrations()).await;
    let service = start(&[("DATABASE__URL", &hidden.database.url())]).await;
    let migrations = async || {
        let response = client().get(format!("{}/readyz", service.url)).send().await.unwrap();
        response.json::<Value>().await.unwrap()["parts"]["migrations"].clone()
    };
    assert_eq!(migrations().await, "not known yet");
    hidden.show().await;
    eventually("the migrations are known", Duration::from_secs(300), async || {
        (migrations().await == "ok").then_some(())
    })
    .await;
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_ends_if_the_database_lacks_a_migration() {
    let hidden = Hidden::create(Vec::new()).await;
    let url = hidden.database.url();
    let mut running = try_start(&[("DATABASE__URL", &url)]).await.unwrap();
    hidden.show().await;
    tokio::time::timeout(Duration::from_secs(120), running.failed()).await.unwrap();
    running.stop().await;
    let error = try_start(&[("DATABASE__URL", &url)]).await.err().unwrap();
    assert!(error.to_string().contains("run `echo migrate` first"), "{error}");
}

#[derive(diesel::QueryableByName)]
struct Counted {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_transaction_does_not_return_to_the_pool() {
    let database = Database::create(Vec::new()).await;
    let pool = database.pool();
    pool.get().await.unwrap().batch_execute("CREATE TABLE notes (n BIGINT)").await.unwrap();
    for _ in 0..20 {
        let abandoned = async {
            let mut conn = pool.get().await.unwrap();
            conn.transaction(async |conn| {
                conn.batch_execute("INSERT INTO notes VALUES (1)").await?;
                std::future::pending::<()>().await;
                diesel::QueryResult::Ok(())
            })
            .await
        };
        // The client is gone in the middle of the transaction.
        assert!(tokio::time::timeout(Duration::from_millis(50), abandoned).await.is_err());
        let mut conn = pool.get().await.unwrap();
        conn.transaction(async |conn| conn.batch_execute("INSERT INTO notes VALUES (2)").await)
            .await
            .unwrap();
    }
    let mut conn = pool.get().await.unwrap();
    let count = async |conn: &mut _, value: i64| {
        let query = diesel::sql_query("SELECT count(*) AS n FROM notes WHERE n = $1")
            .bind::<BigInt, _>(value);
        query.get_result::<Counted>(conn).await.unwrap().n
    };
    assert_eq!(
        count(&mut conn, 2).await,
        20,
        "a finished transaction was lost with an abandoned one"
    );
    assert_eq!(count(&mut conn, 1).await, 0, "an abandoned transaction was committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_an_abandoned_request_is_released() {
    const LOCK: i64 = 7;
    let database = Database::create(Vec::new()).await;
    let timed_out = database.pool();
    let other = database.pool();
    for round in 0..50 {
        // Between the request for the lock and its response.
        let timeout = Duration::from_micros(round * 40);
        drop(tokio::time::timeout(timeout, timed_out.try_lead(LOCK)).await);
    }
    let leading = eventually("the lock is free", Duration::from_secs(300), async || {
        other.try_lead(LOCK).await.unwrap()
    })
    .await;
    assert!(timed_out.try_lead(LOCK).await.unwrap().is_none(), "two lead");
    drop(leading);
    eventually("the lock went with the leader", Duration::from_secs(300), async || {
        timed_out.try_lead(LOCK).await.unwrap()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_rows_are_deleted_in_batches_and_new_rows_stay() {
    let database = Database::create(Vec::new()).await;
    // Deleting all rows in one statement would exceed the statement timeout.
    database
        .execute_raw(
            "CREATE TABLE notes (at TIMESTAMPTZ NOT NULL);
             INSERT INTO notes SELECT now() - INTERVAL '1 day' FROM generate_series(1, 25000);
             INSERT INTO notes VALUES (now());
             CREATE FUNCTION in_pieces() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
                 ASSERT (SELECT count(*) FROM gone) <= 10000, 'too many at once';
                 RETURN NULL;
             END $$;
             CREATE TRIGGER in_pieces AFTER DELETE ON notes REFERENCING OLD TABLE AS gone
                 FOR EACH STATEMENT EXECUTE FUNCTION in_pieces();",
        )
        .await;
    let now = platform::Clock::system().now();
    let delete = async |now| {
        let age = chrono::TimeDelta::hours(1);
        platform::database::delete_older_than(&database.pool(), "notes", "at", now, age).await
    };
    let ahead = delete(now + chrono::TimeDelta::days(31)).await.unwrap_err();
    assert!(ahead.to_string().contains("differ by more than an hour"), "{ahead}");
    let kept = database.count("SELECT count(*) AS n FROM notes").await;
    assert_eq!(kept, 25_001, "a clock that is ahead deletes nothing");
    delete(now + chrono::TimeDelta::minutes(50)).await.unwrap();
    database
        .execute_raw(
            "DO $$ BEGIN ASSERT (SELECT count(*) FROM notes) = 1, 'not all, or too many'; END $$",
        )
        .await;
}

#[tokio::test]
async fn a_session_whose_client_is_lost_ends_within_half_a_minute() {
    #[derive(diesel::QueryableByName)]
    struct Row {
        #[diesel(sql_type = diesel::sql_types::Text)]
        name: String,
        #[diesel(sql_type = diesel::sql_types::Text)]
        setting: String,
    }
    let database = Database::create(vec![]).await;
    let mut conn = database.pool().get().await.unwrap();
    // The server shows what its socket says.
    let watched = "SELECT name, setting FROM pg_settings WHERE name LIKE 'tcp\\_%' ORDER BY name";
    let rows: Vec<Row> = diesel::sql_query(watched).load(&mut conn).await.unwrap();
    let shown: Vec<_> = rows.iter().map(|row| format!("{}={}", row.name, row.setting)).collect();
    assert_eq!(
        shown,
        [
            "tcp_keepalives_count=3",
            "tcp_keepalives_idle=10",
            "tcp_keepalives_interval=5",
            "tcp_user_timeout=25000",
        ]
    );
}

#[tokio::test]
async fn a_timeout_is_recognized_when_the_server_translates_messages() {
    let database = Database::create(vec![]).await;
    let translated = "DO $$ BEGIN ASSERT current_setting('lc_messages') <> 'C'; END $$";
    database.execute_raw(translated).await;
    let mut conn = database.pool().get().await.unwrap();
    let untranslated = "DO $$ BEGIN ASSERT current_setting('lc_messages') = 'C'; END $$";
    conn.batch_execute(untranslated).await.unwrap();
    conn.batch_execute("SET statement_timeout = 10").await.unwrap();
    let timeout = conn.batch_execute("SELECT pg_sleep(1)").await.unwrap_err();
    assert_eq!(timeout.kind(), ErrorKind::Unavailable, "{timeout}");
    assert!(timed_out(&timeout), "{timeout}");
}

#[tokio::test]
async fn statements_are_not_compiled() {
    let database = Database::create(vec![]).await;
    let not_compiled = "DO $$ BEGIN ASSERT current_setting('jit') = 'off'; END $$";
    let mut conn = database.pool().get().await.unwrap();
    diesel::sql_query(not_compiled).execute(&mut conn).await.unwrap();
}

/// Whether a task that waits for this notification would wake now.
fn is_woken(wake: &Notify) -> bool {
    wake.notified().now_or_never().is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_woken_after_the_commit_and_not_before() {
    let database = Database::create(vec![]).await;
    let pool = testkit::process(&database).pool;
    let wake = Arc::new(Notify::new());
    let other = Arc::new(Notify::new());
    let mut conn = pool.get().await.unwrap();
    conn.transaction(async |_| {
        wake_after_commit(&wake);
        assert!(!is_woken(&wake), "woken before the commit");
        Ok::<_, DatabaseError>(())
    })
    .await
    .unwrap();
    assert!(is_woken(&wake));
    assert!(!is_woken(&other));
    wake_after_commit(&other);
    assert!(is_woken(&other), "there is no transaction");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_runs_after_the_commit_and_is_dropped_if_there_is_none() {
    let database = Database::create(vec![]).await;
    let pool = testkit::process(&database).pool;
    let ran = Arc::new(Notify::new());
    let action = |ran: &Arc<Notify>| {
        let ran = ran.clone();
        move || ran.notify_one()
    };
    let mut conn = pool.get().await.unwrap();
    conn.transaction(async |_| {
        assert!(is_in_transaction());
        assert!(run_after_commit(action(&ran)));
        assert!(!is_woken(&ran), "it ran before the commit");
        Ok::<_, DatabaseError>(())
    })
    .await
    .unwrap();
    assert!(is_woken(&ran));
    let failed = conn
        .transaction(async |_| {
            run_after_commit(action(&ran));
            Err::<(), _>(DatabaseError::Contended)
        })
        .await;
    assert!(failed.is_err());
    assert!(!is_in_transaction());
    assert!(!run_after_commit(action(&ran)));
    assert!(!is_woken(&ran));
    assert_eq!(Arc::strong_count(&ran), 1, "the actions are dropped");
}
