//! From the database into the broker.

use diesel_async::SimpleAsyncConnection as _;
use serde_json::json;
use testkit::{Database, Namespace, eventually};

use crate::test_app::{
    Replica, TIMEOUT, TestApp, count, execute, merchant, message, migrations, store_merchant,
};

/// Marks all deliveries as queued.
const QUEUE: &str =
    "UPDATE deliveries SET state = 'queued', leased_until = now() + INTERVAL '5 minutes'";

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_whose_message_is_missing_delays_no_other() {
    let app = TestApp::start(&[("DELIVERY__INITIAL_WINDOW", "1")]).await;
    let mut conn = app.pool.get().await.unwrap();
    let now = platform::Clock::system().now();
    // One transaction appends and deletes it, so that the dispatcher never sees the message.
    let lost = conn
        .transaction(async |conn| {
            let first = [message(Some("rma:1"), "rma.created", 1)];
            let ids = app.replica.deliveries.append(conn, now, &first).await?;
            let delete = format!("DELETE FROM delivery_messages WHERE id = '{}'", ids[0]);
            conn.batch_execute(&delete).await?;
            Ok::<_, platform::database::DatabaseError>(ids[0])
        })
        .await
        .unwrap();
    drop(conn);
    app.append(&(2..6).map(|n| message(None, "rma.created", n)).collect::<Vec<_>>()).await;
    eventually("the others arrive", TIMEOUT, async || {
        (app.received().await.len() == 4).then_some(())
    })
    .await;
    let postponed = format!(
        "SELECT count(*) AS n FROM deliveries \
         WHERE id = '{lost}' AND state = 'ready' \
         AND next_attempt_at > now() + INTERVAL '1 minute'"
    );
    eventually("it is postponed", TIMEOUT, async || {
        (app.count(&postponed).await == 1).then_some(())
    })
    .await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_quiet_time_a_claim_still_reads_few_rows() {
    const BURST: usize = 4_000;
    let app = TestApp::start(&[]).await;
    // From now on the planner takes the table for empty.
    execute(&app.pool, "ALTER TABLE deliveries SET (autovacuum_enabled = off)").await;
    for number in 0..12 {
        app.append(&[message(None, "quiet", number)]).await;
        app.wait_until_settled(TIMEOUT).await;
        if number == 0 {
            execute(&app.pool, "VACUUM (ANALYZE, TRUNCATE off) deliveries").await;
        }
    }
    let read = "SELECT idx_tup_fetch AS n FROM pg_stat_user_tables WHERE relname = 'deliveries'";
    let (before, burst) = (app.count(read).await, i64::try_from(BURST).unwrap());
    let ordering_keys =
        (0..BURST).map(|number| message(Some(&format!("{number}")), "burst", number));
    app.append(&ordering_keys.collect::<Vec<_>>()).await;
    // A count would read all rows.
    eventually("everything is settled", TIMEOUT, async || {
        let any = "SELECT count(*) AS n FROM (SELECT FROM deliveries LIMIT 1) AS one";
        (app.count(any).await == 0).then_some(())
    })
    .await;
    eventually("the reads are counted", TIMEOUT, async || {
        (app.count(read).await - before >= burst).then_some(())
    })
    .await;
    let each = (app.count(read).await - before) / burst;
    assert!(each < 30, "read {each} rows for each message");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_initial_window_is_no_wider_than_the_maximum() {
    let settings = [("DELIVERY__INITIAL_WINDOW", "8"), ("DELIVERY__MAX_WINDOW", "2")];
    let app = TestApp::start(&settings).await;
    app.behave(json!([{"do": "hang", "times": "always"}])).await;
    let messages: Vec<_> = (0..8).map(|number| message(None, "rma.created", number)).collect();
    app.append(&messages).await;
    app.dispatched().await;
    let queued = "SELECT count(*) AS n FROM deliveries WHERE state = 'queued'";
    assert_eq!(app.count(queued).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_before_the_merchants_are_loaded() {
    let (database, namespace) = (Database::create(migrations()).await, Namespace::create());
    let sandbox = sandbox::start(&sandbox::settings::Settings::for_tests().unwrap()).unwrap();
    let pool = database.pool();
    store_merchant(&pool, &merchant("acme", 1, &sandbox.url(""))).await;
    let mut locker = pool.get().await.unwrap();
    locker.batch_execute("BEGIN; LOCK TABLE replica_merchants").await.unwrap();
    let replica = Replica::launch(&database, &namespace, &[]);
    let now = platform::Clock::system().now();
    eventually("the partition of today exists", TIMEOUT, async || {
        let conn = pool.get().await.unwrap();
        let only = [message(None, "rma.created", 1)];
        replica.deliveries.append(&conn, now, &only).await.ok()
    })
    .await;
    // The replica queries the merchants again after a lock timeout. A dispatcher that did not wait
    // for them would have sent the message by then.
    let waits = async |not: i64| {
        let since = "SELECT COALESCE(max(extract(epoch FROM query_start) * 1000), 0)::int8 AS n \
                     FROM pg_stat_activity WHERE datname = current_database() \
                     AND wait_event_type = 'Lock' AND query LIKE '%replica_merchants%'";
        eventually("the replica waits for the lock", TIMEOUT, async || {
            Some(count(&pool, since).await).filter(|since| *since > 0 && *since != not)
        })
        .await
    };
    let first = waits(0).await;
    waits(first).await;
    locker.batch_execute("ROLLBACK").await.unwrap();
    eventually("it is settled", TIMEOUT, async || {
        (count(&pool, "SELECT count(*) AS n FROM deliveries").await == 0).then_some(())
    })
    .await;
    assert_eq!(count(&pool, "SELECT count(*) AS n FROM delivery_attempts").await, 1);
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_queued_before_a_pause_is_released() {
    let app = TestApp::start(&[]).await;
    let mut paused = merchant("acme", 2, &app.sandbox.url(""));
    paused.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    store_merchant(&app.pool, &paused).await;
    app.wait_for_merchant("acme", 2).await;
    let ids = app.append(&[message(None, "rma.created", 1)]).await;
    execute(&app.pool, QUEUE).await;
    app.publish(&[app.queue_message(ids[0], &[])]).await;
    eventually("it is released", TIMEOUT, async || {
        let ready = "SELECT count(*) AS n FROM deliveries WHERE state = 'ready' AND attempts = 0";
        (app.count(ready).await == 1).then_some(())
    })
    .await;
    assert!(app.received().await.is_empty());
    store_merchant(&app.pool, &merchant("acme", 3, &app.sandbox.url(""))).await;
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outdated_copy_of_a_message_that_was_queued_again_is_not_sent() {
    let app = TestApp::start(&[]).await;
    let mut conn = app.pool.get().await.unwrap();
    let now = platform::Clock::system().now();
    // One transaction appends and queues it, so that the dispatcher does not publish it.
    let ids = conn
        .transaction(async |conn| {
            let only = [message(None, "rma.created", 1)];
            let ids = app.replica.deliveries.append(conn, now, &only).await?;
            conn.batch_execute(QUEUE).await?;
            Ok::<_, platform::database::DatabaseError>(ids)
        })
        .await
        .unwrap();
    drop(conn);
    // The copy has another lease than the row. Another sender may have the current copy.
    app.publish(&[app.queue_message(ids[0], &[("requeues", "1")])]).await;
    app.dispatched().await;
    assert!(app.received().await.is_empty());
    let queued = "SELECT count(*) AS n FROM deliveries WHERE state = 'queued'";
    assert_eq!(app.count(queued).await, 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_leader_counts_messages_in_flight_that_it_settled_before() {
    let database = Database::create(migrations()).await;
    let mut leader = database.pool().get().await.unwrap();
    // Another replica leads: the test has the lock of the dispatcher.
    let lock = format!("SELECT pg_advisory_lock({})", 0x6465_6C69_7665_7279_i64);
    leader.batch_execute(&lock).await.unwrap();
    let settings = [("DELIVERY__MAX_WINDOW", "1"), ("DELIVERY__RETRY_BASE", "1h")];
    let app = TestApp::start_on(database, Namespace::create(), &settings).await;
    app.behave(json!([{"do": "respond", "status": 422, "times": 1}])).await;
    let ids = app.append(&[message(None, "rma.created", 1)]).await;
    execute(&app.pool, QUEUE).await;
    app.publish(&[app.queue_message(ids[0], &[])]).await;
    eventually("the first attempt failed", TIMEOUT, async || {
        let failed = "SELECT count(*) AS n FROM deliveries WHERE attempts = 1 AND state = 'ready'";
        (app.count(failed).await == 1).then_some(())
    })
    .await;
    // The second attempt is in flight and fills the window.
    execute(&app.pool, QUEUE).await;
    app.append(&[message(None, "rma.created", 2)]).await;
    leader.batch_execute("SELECT pg_advisory_unlock_all()").await.unwrap();
    app.dispatched().await;
    assert_eq!(app.count("SELECT count(*) AS n FROM deliveries WHERE state = 'ready'").await, 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_sent_while_the_check_for_blocked_heads_fails() {
    let app = TestApp::start(&[]).await;
    execute(
        &app.pool,
        "CREATE SEQUENCE checks; \
         CREATE FUNCTION fail_check() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             PERFORM nextval('checks'); \
             RAISE EXCEPTION 'the check fails'; \
         END $$; \
         CREATE TRIGGER fail_check BEFORE UPDATE ON deliveries FOR EACH ROW \
         WHEN (OLD.state = 'blocked') EXECUTE FUNCTION fail_check(); \
         INSERT INTO deliveries \
         (id, merchant, kind, ordering_key, sequence, state, next_attempt_at) \
         VALUES (gen_random_uuid(), 'acme', 'rma', 'rma:1', 1, 'blocked', now())",
    )
    .await;
    eventually("a check failed", TIMEOUT, async || {
        let checks = "SELECT count(*) AS n FROM checks WHERE is_called";
        (app.count(checks).await == 1).then_some(())
    })
    .await;
    app.append(&[message(None, "rma.created", 2)]).await;
    eventually("the message arrives", TIMEOUT, async || {
        (app.received().await.len() == 1).then_some(())
    })
    .await;
    app.stop().await;
}
