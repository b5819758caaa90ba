//! Outages of the broker and of the database under load.

use messaging::MIGRATIONS;
use testkit::{Database, Namespace, Server, Servers, eventually};

use crate::test_app::{CountingHandler, TIMEOUT, TestApp};

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_crash_under_load_loses_no_event_and_shows_in_readiness() {
    let servers = tokio::task::spawn_blocking(Servers::start).await.unwrap();
    let database = Database::create(vec![MIGRATIONS]).await;
    let namespace = Namespace::create_on(servers.amqp_url(), servers.rabbitmq_api_url());
    let app = TestApp::on(database, namespace).await;
    app.consume(CountingHandler::default());
    let ready = async |expected: bool, timeout| {
        eventually(&format!("ready is {expected}"), timeout, async || {
            (app.process.health.report().await.ready == expected).then_some(())
        })
        .await;
    };
    ready(true, TIMEOUT).await;
    tokio::task::block_in_place(|| servers.restart(Server::Rabbitmq));
    ready(true, TIMEOUT).await;
    for round in 0..2 {
        let base = round * 2000;
        app.append(base..base + 1000).await;
        let servers = &servers;
        tokio::task::block_in_place(|| servers.kill(Server::Rabbitmq));
        ready(false, TIMEOUT).await;
        app.append(base + 1000..base + 2000).await;
        tokio::task::block_in_place(|| servers.start_again(Server::Rabbitmq));
        ready(true, TIMEOUT).await;
        app.assert_handled_once(0..base + 2000).await;
    }
    let (database, namespace) = app.stop().await;
    tokio::task::block_in_place(|| drop((database, namespace, servers)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_outage_delays_events_and_dead_letters_none() {
    let servers = tokio::task::spawn_blocking(Servers::start).await.unwrap();
    let database = Database::create_on(&servers.postgres_url(), vec![MIGRATIONS]).await;
    let app = TestApp::on(database, Namespace::create()).await;
    app.consume(CountingHandler::default());
    app.append(0..2000).await;
    tokio::task::block_in_place(|| {
        servers.kill(Server::Postgres);
        servers.start_again(Server::Postgres);
    });
    eventually("the database is back", TIMEOUT, async || app.process.pool.ping().await.ok()).await;
    app.append(2000..3000).await;
    app.assert_handled_once(0..3000).await;
    let dead = app.peek_dead_letters().await;
    assert!(dead.is_empty(), "{} events were dead-lettered during the outage", dead.len());
    let (database, namespace) = app.stop().await;
    tokio::task::block_in_place(|| drop((database, namespace, servers)));
}
