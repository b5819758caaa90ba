//! No message is lost when the broker, the database or a sender fails.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::message_kind::MessageKind;
use futures_util::future::join_all;
use messaging::Message;
use platform::database::{Connection, Pool};
use serde_json::json;
use testkit::{Database, Namespace, Server, Servers, eventually};
use uuid::Uuid;

use crate::ordering_keys::nothing_overtook;
use crate::test_app::{ReceivedMessage, TIMEOUT, TestApp, execute, message, migrations, try_count};

const LONG_TIMEOUT: Duration = Duration::from_secs(300);
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
const ORDERING_KEYS: usize = 100;

/// Number of messages that are neither waiting nor settled. It must be zero at all times.
pub(crate) const BALANCE: &str = "SELECT (SELECT count(*) FROM delivery_messages) \
     - (SELECT count(*) FROM deliveries) \
     - (SELECT count(DISTINCT delivery) FROM delivery_attempts AS a WHERE settled IS NOT NULL \
        AND NOT EXISTS (SELECT FROM deliveries WHERE id = a.delivery)) AS n";

/// Lets settling wait. Not for a lock, for which it waits a moment only.
const BLOCK_SETTLING: &str = "\
    CREATE TABLE blocked AS SELECT 1; \
    CREATE FUNCTION wait_until_unblocked() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        WHILE EXISTS (SELECT FROM blocked) LOOP PERFORM pg_sleep(0.05); END LOOP; \
        RETURN NULL; \
    END $$; \
    CREATE TRIGGER blocked BEFORE INSERT OR UPDATE OR DELETE ON delivery_counts \
        FOR EACH STATEMENT EXECUTE FUNCTION wait_until_unblocked()";
const UNBLOCK_SETTLING: &str = "DELETE FROM blocked";

async fn start_servers() -> Arc<Servers> {
    Arc::new(tokio::task::spawn_blocking(Servers::start).await.unwrap())
}

/// Runs a blocking action on the servers without blocking the test.
async fn control(servers: &Arc<Servers>, action: impl FnOnce(&Servers) + Send + 'static) {
    let servers = servers.clone();
    tokio::task::spawn_blocking(move || action(&servers)).await.unwrap();
}

/// Checks the [`BALANCE`] repeatedly while `work` runs. Samples fail while the database is down.
async fn check_balance_during<T>(pool: &Pool, work: impl Future<Output = T>) -> T {
    let mut samples = 0;
    let checking = async {
        let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Ok(difference) = try_count(pool, BALANCE).await {
                assert_eq!(difference, 0, "after {samples} samples");
                samples += 1;
            }
        }
    };
    let result = tokio::select! {
        result = work => result,
        () = checking => unreachable!("checking never ends"),
    };
    assert!(samples > 20, "only {samples} samples");
    result
}

/// Counts the requests that were made although the merchant had accepted the message.
pub(crate) fn repeats(received: &[ReceivedMessage]) -> usize {
    let mut requests = HashMap::<&str, usize>::new();
    for message in received {
        *requests.entry(&message.id).or_default() += 1;
    }
    requests.values().map(|count| count - 1).sum()
}

/// Appends messages with these numbers to each of [`ORDERING_KEYS`] keys.
pub(crate) async fn append_ordered(app: &TestApp, from: usize, to: usize) {
    for number in from..to {
        let batch: Vec<_> = (0..ORDERING_KEYS)
            .map(|key| format!("ordering_key-{key}"))
            .map(|key| message(Some(&key), &key, number))
            .collect();
        app.append(&batch).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_loses_its_data_loses_no_message() {
    let servers = start_servers().await;
    let namespace = Namespace::create_on(servers.amqp_url(), servers.rabbitmq_api_url());
    let database = Database::create(migrations()).await;
    let settings = [("DELIVERY__LEASE", "5s"), ("DELIVERY__ATTEMPT_TIMEOUT", "2s")];
    let app = TestApp::start_on(database, namespace, &settings).await;
    check_balance_during(&app.pool, async {
        append_ordered(&app, 0, 5).await;
        eventually("some are queued", TIMEOUT, async || {
            let queued = "SELECT count(*) AS n FROM deliveries WHERE state = 'queued'";
            (app.count(queued).await > 0).then_some(())
        })
        .await;
        control(&servers, |servers| servers.kill(Server::Rabbitmq)).await;
        append_ordered(&app, 5, 10).await;
        control(&servers, |servers| servers.start_empty(Server::Rabbitmq)).await;
        app.wait_until_settled(LONG_TIMEOUT).await;
    })
    .await;
    let received = app.received().await;
    assert_eq!(received.len() - repeats(&received), 1000);
    nothing_overtook(&received);
    app.stop().await;
    tokio::task::block_in_place(|| drop(servers));
}

#[tokio::test(flavor = "multi_thread")]
async fn crashes_of_broker_and_database_lose_no_message() {
    let servers = start_servers().await;
    let namespace = Namespace::create_on(servers.amqp_url(), servers.rabbitmq_api_url());
    let database = Database::create_on(&servers.postgres_url(), migrations()).await;
    let settings = [("DELIVERY__LEASE", "50s"), ("DELIVERY__MAX_WINDOW", "64")];
    let app = TestApp::start_on(database, namespace, &settings).await;
    control(&servers, |servers| servers.restart(Server::Rabbitmq)).await;
    app.replica.ready().await;
    check_balance_during(&app.pool, async {
        append_ordered(&app, 0, 50).await;
        for (turn, server) in [Server::Rabbitmq, Server::Postgres].into_iter().enumerate() {
            eventually("messages are waiting", LONG_TIMEOUT, async || {
                let left = app.count("SELECT count(*) AS n FROM deliveries").await;
                (left > 0).then_some(())
            })
            .await;
            control(&servers, move |servers| {
                servers.kill(server);
                servers.start_again(server);
            })
            .await;
            eventually("every connection of the pool responds", LONG_TIMEOUT, async || {
                let pings = (0..app.database.settings().max_connections).map(|_| app.pool.ping());
                join_all(pings).await.into_iter().all(|ping| ping.is_ok()).then_some(())
            })
            .await;
            append_ordered(&app, 50 + turn * 25, 75 + turn * 25).await;
        }
        app.wait_until_settled(LONG_TIMEOUT).await;
    })
    .await;
    let received = app.received().await;
    // There were two crashes, each with at most one window of messages in flight.
    assert!(repeats(&received) <= 2 * 64, "{} repeats", repeats(&received));
    assert_eq!(received.len() - repeats(&received), 10_000);
    nothing_overtook(&received);
    app.stop().await;
    tokio::task::block_in_place(|| drop(servers));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_stops_receiving_while_the_database_blocks_settling() {
    // Memory for four messages, which a message uses until it is settled.
    let memory = ("DELIVERY__MAX_INFLIGHT", "69632");
    let app = TestApp::start(&[("DELIVERY__INITIAL_WINDOW", "64"), memory]).await;
    execute(&app.pool, BLOCK_SETTLING).await;
    let messages: Vec<_> = (0..40).map(|number| message(None, "rma.created", number)).collect();
    app.append(&messages).await;
    // A settler that times out tries again over another connection.
    let next_waiting_pid = async |last: i64| {
        let waiting = "SELECT COALESCE(max(pid), 0)::int8 AS n FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event = 'PgSleep'";
        eventually("settling waits", TIMEOUT, async || {
            Some(app.count(waiting).await).filter(|pid| *pid > 0 && *pid != last)
        })
        .await
    };
    let first = next_waiting_pid(0).await;
    next_waiting_pid(first).await;
    assert_eq!(app.received().await.len(), 4);
    execute(&app.pool, UNBLOCK_SETTLING).await;
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 40);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settling_continues_while_the_sender_waits_for_a_connection() {
    let app = TestApp::start(&[]).await;
    // Gives the settler its connection.
    app.append(&[message(None, "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    execute(&app.pool, BLOCK_SETTLING).await;
    app.append(&[message(None, "rma.created", 2)]).await;
    eventually("settling waits", TIMEOUT, async || {
        let waiting = "SELECT count(*) AS n FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event = 'PgSleep'";
        (app.count(waiting).await > 0).then_some(())
    })
    .await;
    let connections = take_all_connections(&app).await;
    app.publish(&[app.queue_message(Uuid::now_v7(), &[("requeues", "1")])]).await;
    eventually("the sender has it", TIMEOUT, async || {
        app.namespace.peek(MessageKind::Rma.queue()).await.is_empty().then_some(())
    })
    .await;
    execute(&app.pool, UNBLOCK_SETTLING).await;
    app.wait_until_settled(TIMEOUT).await;
    drop(connections);
    app.stop().await;
}

/// Takes all connections of the replica, as if its database were down.
async fn take_all_connections(app: &TestApp) -> Vec<Connection> {
    let mut connections = Vec::new();
    for _ in 0..app.database.settings().max_connections {
        connections.push(app.replica.process.pool.get().await.unwrap());
    }
    connections
}

/// Publishes messages and waits until the sender has received `total` messages. It must not peek
/// into the queue: a message that was peeked at is redelivered, and so a possible duplicate.
async fn publish_and_wait(app: &TestApp, messages: &[Message], total: u64) {
    app.publish(messages).await;
    eventually("the sender has them", TIMEOUT, async || {
        (app.namespace.delivered_count(MessageKind::Rma.queue()).await >= total).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_received_with_a_possible_duplicate_are_checked_too() {
    let app = TestApp::start(&[]).await;
    let connections = take_all_connections(&app).await;
    let maybe_duplicate = || app.queue_message(Uuid::now_v7(), &[("requeues", "1")]);
    publish_and_wait(&app, &[maybe_duplicate()], 1).await;
    // The sender waits for the database and then receives these two together. Neither is queued.
    publish_and_wait(&app, &[maybe_duplicate(), app.queue_message(Uuid::now_v7(), &[])], 3).await;
    drop(connections);
    let ids = app.append(&[message(None, "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let received: Vec<_> = app.received().await.into_iter().map(|message| message.id).collect();
    assert_eq!(received, [ids[0].to_string()]);
    app.stop().await;
}

/// Waits until the queue has this number of senders.
async fn wait_for_senders(app: &TestApp, expected: usize) {
    eventually("the senders have subscribed", LONG_TIMEOUT, async || {
        (app.namespace.consumers(MessageKind::Rma.queue()).await == expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_sender_loses_no_message_and_repeats_only_those_in_flight() {
    // Messages that the killed sender had acknowledged early wait for their lease to expire.
    let settings = [("DELIVERY__LEASE", "50s"), ("DELIVERY__MAX_WINDOW", "64")];
    let app = TestApp::start(&settings).await;
    let add_settled_by = "ALTER TABLE delivery_attempts \
                  ADD COLUMN settled_by text DEFAULT current_setting('application_name')";
    execute(&app.pool, add_settled_by).await;
    let settled_by_process = "SELECT count(*) AS n FROM delivery_attempts \
                     WHERE settled_by = 'backhaul-deliverer'";
    // The delay keeps messages in flight at any moment.
    app.behave(json!([{"do": "respond", "status": 200, "delay_ms": 20, "times": "always"}])).await;
    let mut killed_after = Vec::new();
    check_balance_during(&app.pool, async {
        for crash in 0..4 {
            let process = app.start_replica_process();
            wait_for_senders(&app, 2).await;
            let before = app.count(settled_by_process).await;
            append_ordered(&app, crash * 25, crash * 25 + 25).await;
            let [.., random] = Uuid::now_v7().into_bytes();
            eventually("the process has settled messages", LONG_TIMEOUT, async || {
                let settled = app.count(settled_by_process).await - before;
                (settled > random.into()).then_some(())
            })
            .await;
            process.kill();
            killed_after.push(random);
            wait_for_senders(&app, 1).await;
        }
        app.wait_until_settled(LONG_TIMEOUT).await;
    })
    .await;
    let received = app.received().await;
    let (repeats, max) = (repeats(&received), killed_after.len() * 64);
    assert!((1..=max).contains(&repeats), "{repeats} repeats, killed after {killed_after:?}");
    assert_eq!(received.len() - repeats, 10_000);
    nothing_overtook(&received);
    app.stop().await;
}
