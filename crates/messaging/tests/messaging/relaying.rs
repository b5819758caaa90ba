//! A leader out of the broker's reach, and a load too large for one batch.

use std::time::Duration;

use domain::event::Event as _;
use messaging::{Broker, MIGRATIONS, Topology, consume};
use testkit::{Database, Namespace, eventually, process};

use crate::{Count, NoteWritten, SOON, Stage, execute, number};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_cannot_reach_the_broker_gives_way_to_one_that_can() {
    let (database, namespace) = (Database::create(vec![MIGRATIONS]).await, Namespace::create());
    let topology = Topology::empty(&namespace.name).subscribe("listener", NoteWritten::TYPE);
    let cut_off = process(&database);
    let mut nowhere = namespace.settings();
    nowhere.url = "amqp://127.0.0.1:1".to_owned().into();
    let broker = Broker::start("writer", &cut_off, nowhere, topology.clone());
    let outbox = broker.relay("writer", &cut_off);
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
    broker.relay("writer", &well);
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
