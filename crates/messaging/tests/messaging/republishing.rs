//! Published events are kept and can be published again.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicI64, Ordering};

use diesel::sql_types::BigInt;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::event::Event as _;
use messaging::{Broker, Envelope, HandleError, Handler, MIGRATIONS, consume};
use testkit::{
    Database, Namespace, Server, Servers, eventually, process, republish, start_republish,
    wait_for_republish,
};

use crate::test_app::{CountingHandler, NoteWritten, TIMEOUT, TestApp, count, stop, topology};

const KEPT: &str = "SELECT count(*) AS n FROM published_events";
const DONE: &str = "SELECT done AS n FROM event_republishes";

impl TestApp {
    /// Publishes notes and waits until they have left the outbox.
    async fn publish(&self, numbers: std::ops::Range<i64>) {
        self.append(numbers).await;
        self.wait_for_empty_outbox().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn published_events_are_kept_by_day_and_expired_days_are_dropped() {
    let database = Database::create(vec![MIGRATIONS]).await;
    database
        .execute_raw(
            "CREATE TABLE published_events_20200101 PARTITION OF published_events \
             FOR VALUES FROM ('2020-01-01Z') TO ('2020-01-02Z')",
        )
        .await;
    let app = TestApp::on(database, Namespace::create()).await;
    app.publish(0..10).await;
    assert_eq!(app.count(KEPT).await, 10);
    let partitions = "SELECT count(*) AS n FROM pg_inherits \
                      WHERE inhparent = 'published_events'::regclass";
    assert_eq!(app.count(partitions).await, 8, "yesterday, today and six more days");
    let days = "SELECT count(DISTINCT tableoid) AS n FROM published_events";
    assert_eq!(app.count(days).await, 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_published_again_are_handled_once() {
    let app = TestApp::new().await;
    app.consume(CountingHandler::default());
    app.append(0..1200).await;
    app.assert_handled_once(0..1200).await;
    republish(&app.process.pool).await;
    // Behind the repeated events in the queue.
    app.append(1200..1201).await;
    app.assert_handled_once(0..1201).await;
    assert_eq!(app.count(DONE).await, 1200);
    assert_eq!(app.count(KEPT).await, 1201, "they are kept once");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_lost_its_disks_under_load_gets_all_events_again() {
    let servers = tokio::task::spawn_blocking(Servers::start).await.unwrap();
    let database = Database::create(vec![MIGRATIONS]).await;
    let namespace = Namespace::create_on(servers.amqp_url(), servers.rabbitmq_api_url());
    let app = TestApp::on(database, namespace).await;
    // These events are confirmed and wait for a consumer.
    app.publish(0..1000).await;
    let wipe = tokio::task::spawn_blocking(move || {
        servers.kill(Server::Rabbitmq);
        servers.start_empty(Server::Rabbitmq);
        servers
    });
    let next = AtomicI64::new(1000);
    eventually("the broker is back", TIMEOUT, async || {
        let first = next.fetch_add(5, Ordering::Relaxed);
        app.append(first..first + 5).await;
        wipe.is_finished().then_some(())
    })
    .await;
    let servers = wipe.await.unwrap();
    let last = next.into_inner();
    app.wait_for_empty_outbox().await;
    app.consume(CountingHandler::default());
    app.append([last]).await;
    let is_handled = format!("SELECT count(*) AS n FROM handled WHERE number = {last}");
    eventually("the events after the loss are handled", TIMEOUT, async || {
        (app.count(&is_handled).await == 1).then_some(())
    })
    .await;
    let handled = app.count("SELECT count(*) AS n FROM handled").await;
    assert!(handled <= last + 1 - 1000, "the broker lost nothing");
    republish(&app.process.pool).await;
    app.assert_handled_once(0..last + 1).await;
    let (database, namespace) = app.stop().await;
    tokio::task::block_in_place(|| drop((database, namespace, servers)));
}

/// Records the notes in the order in which it handles them.
struct OrderedHandler;

impl Handler for OrderedHandler {
    type Event = NoteWritten;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        for event in events {
            let insert = diesel::sql_query("INSERT INTO arrivals (number) VALUES ($1)");
            insert.bind::<BigInt, _>(event.data.number).execute(conn).await?;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_is_added_later_gets_the_kept_events_in_their_order() {
    let app = TestApp::new().await;
    app.consume(CountingHandler::default());
    app.append(0..1500).await;
    app.assert_handled_once(0..1500).await;

    let database = Database::create(vec![MIGRATIONS]).await;
    let arrivals =
        "CREATE TABLE arrivals (position BIGINT GENERATED ALWAYS AS IDENTITY, number BIGINT)";
    database.execute_raw(arrivals).await;
    let added = process(&database);
    let topology = topology(&app.namespace).with_subscription("added", NoteWritten::TYPE);
    let broker = Broker::start("added", &added, app.namespace.settings(), topology);
    consume(&broker, "added", &added, OrderedHandler);
    eventually("the new queue is declared", TIMEOUT, async || broker.consuming.state().ok()).await;
    republish(&app.process.pool).await;
    eventually("the new consumer has all events", TIMEOUT, async || {
        (count(&added.pool, "SELECT count(*) AS n FROM arrivals").await == 1500).then_some(())
    })
    .await;
    let out_of_order = "SELECT count(*) AS n FROM ( \
                            SELECT number, lag(number) OVER (ORDER BY position) AS before FROM arrivals \
                        ) AS pair WHERE number < before";
    assert_eq!(count(&added.pool, out_of_order).await, 0);
    app.assert_handled_once(0..1500).await;
    stop(added).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_request_publishes_no_further_events() {
    let app = TestApp::new().await;
    app.publish(0..1000).await;
    let (database, namespace) = app.stop().await;

    let mut settings = namespace.settings();
    settings.republish_per_second = NonZeroU32::new(50).unwrap();
    let slow = process(&database);
    let broker = Broker::start("writer", &slow, settings, topology(&namespace));
    broker.start_relay("writer", &slow);
    start_republish(&slow.pool).await;
    eventually("some events are published", TIMEOUT, async || {
        (count(&slow.pool, DONE).await >= 50).then_some(())
    })
    .await;
    database
        .execute_raw("UPDATE event_republishes SET state = 'stopped', finished_at = now()")
        .await;
    stop(slow).await;

    let next = process(&database);
    let broker = Broker::start("writer", &next, namespace.settings(), topology(&namespace));
    broker.start_relay("writer", &next);
    // The relay runs: it does another request.
    republish(&next.pool).await;
    let stopped = "SELECT done AS n FROM event_republishes WHERE state = 'stopped'";
    let done = count(&next.pool, stopped).await;
    assert!((50..1000).contains(&done), "{done}");
    stop(next).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn publishing_again_is_limited_per_second_and_continues_after_a_restart() {
    let app = TestApp::new().await;
    app.publish(0..1000).await;
    let (database, namespace) = app.stop().await;

    let mut settings = namespace.settings();
    settings.republish_per_second = NonZeroU32::new(100).unwrap();
    settings.relay_batch_size = NonZeroUsize::new(50).unwrap();
    let slow = process(&database);
    let broker = Broker::start("writer", &slow, settings, topology(&namespace));
    broker.start_relay("writer", &slow);
    start_republish(&slow.pool).await;
    eventually("some events are published", TIMEOUT, async || {
        (count(&slow.pool, DONE).await >= 150).then_some(())
    })
    .await;
    let seconds = "SELECT ceil(extract(epoch FROM clock_timestamp() - created_at))::bigint AS n \
                   FROM event_republishes";
    let done = count(&slow.pool, DONE).await;
    let seconds = count(&slow.pool, seconds).await;
    stop(slow).await;
    assert!(done <= 50 + 100 * seconds, "{done} events in {seconds} seconds");
    assert!(done < 1000, "nothing is left for the next process");

    let next = process(&database);
    let broker = Broker::start("writer", &next, namespace.settings(), topology(&namespace));
    broker.start_relay("writer", &next);
    wait_for_republish(&next.pool).await;
    assert_eq!(count(&next.pool, DONE).await, 1000, "it continued and did not start over");
    stop(next).await;
}
