//! Who relays, when, and how much at once.

use std::time::Duration;

use domain::event::Event as _;
use messaging::{Broker, MIGRATIONS, Outbox, Topology, consume};
use testkit::{Database, Namespace, eventually, process};

use crate::{Count, NoteWritten, SOON, Stage, execute, number};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_cannot_reach_the_broker_gives_way_to_one_that_can() {
    let (database, namespace) = (Database::create(vec![MIGRATIONS]).await, Namespace::create());
    let topology =
        Topology::empty(&namespace.name).with_subscription("listener", NoteWritten::TYPE);
    let cut_off = process(&database);
    let mut nowhere = namespace.settings();
    nowhere.url = "amqp://127.0.0.1:1".to_owned().into();
    let broker = Broker::start("writer", &cut_off, nowhere, topology.clone());
    let outbox = broker.start_relay("writer", &cut_off);
    consume(&broker, "listener", &cut_off, Count { refuses: None });
    let leaders = "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND granted \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    eventually("it leads", SOON, async || {
        (number(&cut_off.pool, leaders).await == 1).then_some(())
    })
    .await;
    let mut conn = cut_off.pool.get().await.unwrap();
    outbox.append(&mut conn, cut_off.clock.now(), [NoteWritten { number: 1 }]).await.unwrap();
    drop(conn);

    let well = process(&database);
    let broker = Broker::start("writer", &well, namespace.settings(), topology);
    broker.start_relay("writer", &well);
    eventually("the other one relays", LONG, async || {
        (number(&well.pool, "SELECT count(*) AS n FROM outbox").await == 0).then_some(())
    })
    .await;
    for process in [cut_off, well] {
        assert!(process.tasks.drain(Duration::from_secs(10)).await, "tasks did not stop");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_ends_when_it_is_a_full_load() {
    let stage = Stage::new().await;
    execute(
        &stage.process.pool,
        "CREATE TABLE loads (bytes BIGINT NOT NULL); \
         CREATE FUNCTION weigh() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO loads SELECT sum(octet_length(event)) FROM gone; RETURN NULL; END $$; \
         CREATE TRIGGER weigh AFTER DELETE ON outbox REFERENCING OLD TABLE AS gone \
         FOR EACH STATEMENT EXECUTE FUNCTION weigh(); \
         INSERT INTO outbox (event_id, routing_key, event, created_at) \
         SELECT gen_random_uuid(), 'note.written.v1', repeat('x', 3 * 1024 * 1024), now() \
         FROM generate_series(1, 6)",
    )
    .await;
    eventually("everything is published", SOON, async || {
        (stage.number("SELECT count(*) AS n FROM outbox").await == 0).then_some(())
    })
    .await;
    let heaviest = stage.number("SELECT max(bytes) AS n FROM loads").await;
    assert!(heaviest <= 9 * 1024 * 1024, "{heaviest} bytes at once");
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_dies_between_publishing_and_deleting_publishes_again_and_nobody_notices() {
    let stage = Stage::new().await;
    stage.listen(None);
    // Deleting fails, so the relay publishes, is thrown back, and starts over: the crash, held still.
    execute(
        &stage.process.pool,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not yet'; END $$; \
         CREATE TRIGGER refuse BEFORE DELETE ON outbox EXECUTE FUNCTION refuse();",
    )
    .await;
    stage.write(0..10).await;
    eventually("the events were published although their rows stay", SOON, async || {
        (stage.number("SELECT count(*) AS n FROM seen").await == 10).then_some(())
    })
    .await;
    assert_eq!(stage.number("SELECT count(*) AS n FROM outbox").await, 10);
    execute(&stage.process.pool, "DROP TRIGGER refuse ON outbox").await;
    stage.all_seen_once(0..10).await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_relays_one_leads_and_the_other_takes_over() {
    let first = Stage::new().await;
    let second = {
        let process = process(&first.database);
        let broker = Broker::start(
            "writer",
            &process,
            first.namespace.settings(),
            first.broker.topology.clone(),
        );
        broker.start_relay("writer", &process);
        process
    };
    let leaders = "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND granted \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    eventually("a leader", SOON, async || (first.number(leaders).await == 1).then_some(())).await;
    first.listen(None);
    first.write(0..100).await;
    first.all_seen_once(0..100).await;
    assert_eq!(first.number(leaders).await, 1);

    let pool = first.process.pool.clone();
    assert!(first.process.tasks.drain(Duration::from_secs(10)).await);
    drop(first.process);
    // The first relay's connection went back to a pool that lives on: its lock must not.
    eventually("the second leads", SOON, async || {
        (number(&pool, leaders).await == 1).then_some(())
    })
    .await;
    let mut conn = second.pool.get().await.unwrap();
    let outbox = Outbox::new("writer");
    outbox.append(&mut conn, second.clock.now(), [NoteWritten { number: 100 }]).await.unwrap();
    eventually("the second relays", SOON, async || {
        (number(&second.pool, "SELECT count(*) AS n FROM outbox").await == 0).then_some(())
    })
    .await;
    assert!(second.tasks.drain(Duration::from_secs(10)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_does_not_lead_keeps_its_connections() {
    let leader = Stage::new().await;
    leader.listen(None);
    leader.write([0]).await;
    leader.all_seen_once(0..1).await;
    let process = process(&leader.database);
    let topology = leader.broker.topology.clone();
    let broker = Broker::start("writer", &process, leader.namespace.settings(), topology);
    let outbox = broker.start_relay("writer", &process);
    for number in 1..60 {
        let mut conn = process.pool.get().await.unwrap();
        outbox.append(&mut conn, process.clock.now(), [NoteWritten { number }]).await.unwrap();
        drop(conn);
        // The leader polls, so the other one has had time for what it does when woken.
        leader.all_seen_once(0..number + 1).await;
    }
    let ended = leader.number(testkit::ENDED_SESSIONS).await;
    assert!(ended < 10, "{ended} connections were made and dropped");
    assert!(process.tasks.drain(Duration::from_secs(10)).await);
    leader.leave().await;
}
