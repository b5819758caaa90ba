//! The outbox relay: leadership, batches and crashes.

use diesel_async::SimpleAsyncConnection as _;
use messaging::{Broker, MIGRATIONS};
use testkit::{Database, Namespace, eventually, process};

use crate::test_app::{
    CountingHandler, QUEUE, TIMEOUT, TestApp, append, leaders, stop, topology,
    wait_for_empty_outbox, wait_for_leader,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_cannot_reach_the_broker_yields_to_one_that_can() {
    let database = Database::create(vec![MIGRATIONS]).await;
    let namespace = Namespace::create();
    let disconnected = process(&database);
    let mut settings = namespace.settings();
    settings.url = "amqp://127.0.0.1:1".to_owned().into();
    let broker = Broker::start("writer", &disconnected, settings, topology(&namespace));
    let outbox = broker.start_relay("writer", &disconnected);
    wait_for_leader(&disconnected.pool).await;
    append(&disconnected, &outbox, [1]).await;

    let connected = process(&database);
    let broker = Broker::start("writer", &connected, namespace.settings(), topology(&namespace));
    broker.start_relay("writer", &connected);
    wait_for_empty_outbox(&connected.pool).await;
    stop(disconnected).await;
    stop(connected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_limited_in_bytes() {
    let app = TestApp::new().await;
    app.execute(
        "CREATE TABLE batches (bytes BIGINT NOT NULL); \
         CREATE FUNCTION record_batch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO batches SELECT sum(octet_length(event)) FROM deleted; RETURN NULL; END $$; \
         CREATE TRIGGER record_batch AFTER DELETE ON outbox REFERENCING OLD TABLE AS deleted \
         FOR EACH STATEMENT EXECUTE FUNCTION record_batch(); \
         INSERT INTO outbox (event_id, routing_key, event, created_at) \
         SELECT gen_random_uuid(), 'note.written.v1', repeat('x', 3 * 1024 * 1024), now() \
         FROM generate_series(1, 6)",
    )
    .await;
    app.wait_for_empty_outbox().await;
    let largest = app.count("SELECT max(bytes) AS n FROM batches").await;
    assert!(largest <= 9 * 1024 * 1024, "{largest} bytes in one batch");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_published_twice_are_handled_once() {
    let app = TestApp::new().await;
    app.consume(CountingHandler::default());
    // The relay publishes but cannot delete, as if it crashed in between.
    app.execute(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$; \
         CREATE TRIGGER fail BEFORE DELETE ON outbox EXECUTE FUNCTION fail();",
    )
    .await;
    app.append(0..10).await;
    app.wait_for_handled(10).await;
    assert_eq!(app.count("SELECT count(*) AS n FROM outbox").await, 10);
    app.execute("DROP TRIGGER fail ON outbox").await;
    app.assert_handled_once(0..10).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_cannot_be_moved_are_not_published_again() {
    let app = TestApp::new().await;
    // The partitions exist, so the maintenance does not wait for the lock.
    app.append([0]).await;
    app.wait_for_empty_outbox().await;
    let mut holder = app.process.pool.get().await.unwrap();
    let lock = "BEGIN; LOCK TABLE published_events IN SHARE MODE";
    holder.batch_execute(lock).await.unwrap();
    app.append(1..10).await;
    for _ in 0..4 {
        eventually("the relay waits for the lock", TIMEOUT, async || {
            let canceled = "SELECT count(pg_cancel_backend(pid)) AS n FROM pg_stat_activity \
                            WHERE datname = current_database() AND wait_event_type = 'Lock' \
                            AND query LIKE '-- Moves confirmed events%'";
            (app.count(canceled).await == 1).then_some(())
        })
        .await;
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    app.wait_for_empty_outbox().await;
    assert_eq!(app.count("SELECT count(*) AS n FROM published_events").await, 10);
    assert_eq!(app.namespace.peek(QUEUE).await.len(), 10);
    app.append([10]).await;
    app.wait_for_empty_outbox().await;
    assert_eq!(app.namespace.peek(QUEUE).await.len(), 11);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_event_delays_no_other_and_is_published_once() {
    let app = TestApp::new().await;
    app.append([0]).await;
    app.wait_for_empty_outbox().await;
    let mut table_holder = app.process.pool.get().await.unwrap();
    table_holder.batch_execute("BEGIN; LOCK TABLE published_events IN SHARE MODE").await.unwrap();
    app.append(1..10).await;
    eventually("the relay waits for the table", TIMEOUT, async || {
        let waiting = "SELECT count(*) AS n FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock' \
                       AND query LIKE '-- Moves confirmed events%'";
        (app.count(waiting).await == 1).then_some(())
    })
    .await;
    let mut holder = app.process.pool.get().await.unwrap();
    let lock = "BEGIN; SELECT FROM outbox ORDER BY sequence LIMIT 1 FOR UPDATE";
    holder.batch_execute(lock).await.unwrap();
    table_holder.batch_execute("ROLLBACK").await.unwrap();
    app.append(10..15).await;
    eventually("the other events are moved", TIMEOUT, async || {
        let moved = app.count("SELECT count(*) AS n FROM published_events").await;
        (moved == 14).then_some(())
    })
    .await;
    assert_eq!(app.count("SELECT count(*) AS n FROM outbox").await, 1);
    holder.batch_execute("ROLLBACK").await.unwrap();
    app.wait_for_empty_outbox().await;
    assert_eq!(app.count("SELECT count(*) AS n FROM published_events").await, 15);
    assert_eq!(app.namespace.peek(QUEUE).await.len(), 15);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_relays_leads_and_the_other_takes_over() {
    let first = TestApp::new().await;
    let (second, second_outbox) = first.start_replica();
    wait_for_leader(&first.process.pool).await;
    first.consume(CountingHandler::default());
    first.append(0..100).await;
    first.assert_handled_once(0..100).await;
    assert_eq!(leaders(&first.process.pool).await, 1);

    // The pool outlives the first relay; its lock must not.
    let pool = first.process.pool.clone();
    stop(first.process).await;
    eventually("the second relay leads", TIMEOUT, async || {
        (leaders(&pool).await == 1).then_some(())
    })
    .await;
    append(&second, &second_outbox, [100]).await;
    wait_for_empty_outbox(&second.pool).await;
    stop(second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_does_not_lead_keeps_its_connections() {
    let leader = TestApp::new().await;
    leader.consume(CountingHandler::default());
    leader.append([0]).await;
    leader.assert_handled_once(0..1).await;
    let (follower, outbox) = leader.start_replica();
    for number in 1..60 {
        append(&follower, &outbox, [number]).await;
        // The leader has polled, so the woken follower has had time to try for the lock.
        leader.assert_handled_once(0..number + 1).await;
    }
    let ended = leader.count(testkit::ENDED_SESSIONS).await;
    assert!(ended < 10, "{ended} connections were opened and closed");
    stop(follower).await;
    leader.stop().await;
}
