//! The backlog of a service.

use std::time::{Duration, Instant};

use messaging::{Backlog, BrokerState, QueueBacklog};
use platform::Tasks;
use testkit::{Database, Namespace, eventually};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::test_app::{CountingHandler, QUEUE, TIMEOUT, TestApp};

impl TestApp {
    fn backlog(&self) -> Backlog {
        Backlog::new("consumer", &self.process, &self.broker, &[])
    }

    /// Waits until the queue has these numbers of messages, consumers and dead letters.
    async fn wait_for_backlog(&self, depth: u32, consumers: u32, dead_letters: u32) {
        let queue = format!("{}.{QUEUE}", self.namespace.name);
        let expected = vec![QueueBacklog { queue, depth, consumers, dead_letters }];
        eventually(&format!("{expected:?}"), TIMEOUT, async || {
            (self.backlog().report().await.unwrap().queues == expected).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backlog_of_a_queue_is_its_messages_consumers_and_dead_letters() {
    let app = TestApp::new().await;
    app.wait_for_backlog(0, 0, 0).await;
    for _ in 0..2 {
        app.namespace.publish_raw(QUEUE, "this is not an event").await;
    }
    app.wait_for_backlog(2, 0, 0).await;
    app.consume(CountingHandler::default());
    app.wait_for_backlog(0, 1, 2).await;
    let report = app.backlog().report().await.unwrap();
    assert_eq!((report.service, report.broker), ("consumer", BrokerState::Available));
    assert_eq!((report.outbox.unpublished, report.outbox.oldest_age_seconds), (0, None));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backlog_of_the_outbox_is_counted_up_to_a_limit() {
    let app = TestApp::new().await;
    // No queue is bound to this routing key, so the events stay in the outbox.
    let insert = |count: u32, age: u32| {
        format!(
            "INSERT INTO outbox (event_id, routing_key, event, created_at) \
             SELECT gen_random_uuid(), 'nobody', '{{}}', now() - INTERVAL '{age} seconds' \
             FROM generate_series(1, {count})"
        )
    };
    app.execute(&insert(1, 90)).await;
    app.execute(&insert(2, 30)).await;
    let outbox = app.backlog().report().await.unwrap().outbox;
    assert_eq!(outbox.unpublished, 3);
    let age = outbox.oldest_age_seconds.unwrap();
    assert!((90..210).contains(&age), "{age}");
    app.execute(&insert(10_000, 0)).await;
    assert_eq!(app.backlog().report().await.unwrap().outbox.unpublished, 10_000);
    app.stop().await;
}

/// Forwards connections to the broker. The returned sender freezes them.
async fn start_proxy(broker: &str, tasks: &Tasks) -> (String, watch::Sender<bool>) {
    let mut url = url::Url::parse(broker).unwrap();
    let target = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
    let (freeze, frozen) = watch::channel(false);
    let forwarders = tasks.clone();
    tasks.spawn("proxy", |stop| async move {
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let mut client = accepted.unwrap().0;
            let target = target.clone();
            let mut frozen = frozen.clone();
            forwarders.spawn("connection", |stop| async move {
                let mut server = TcpStream::connect(target).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    _ = frozen.wait_for(|frozen| *frozen) => {}
                    () = stop.cancelled() => {}
                }
                // The connections stay open.
                stop.cancelled().await;
            });
        }
    });
    (url.to_string(), freeze)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_broker_does_not_delay_the_backlog() {
    let database = Database::create(vec![messaging::MIGRATIONS]).await;
    let direct = Namespace::create();
    let tasks = Tasks::default();
    let (url, freeze) = start_proxy(direct.amqp_url(), &tasks).await;
    let namespace = Namespace::create_on(url, direct.api_url().to_owned());
    let app = TestApp::on(database, namespace).await;
    app.wait_for_backlog(0, 0, 0).await;

    // The connection is open, and the broker does not respond.
    freeze.send_replace(true);
    let started = Instant::now();
    let report = app.backlog().report().await.unwrap();
    let took = started.elapsed();
    assert_eq!((report.broker, report.queues), (BrokerState::Unavailable, vec![]));
    assert_eq!(report.outbox.unpublished, 0);
    assert!((Duration::from_secs(1)..Duration::from_secs(4)).contains(&took), "{took:?}");

    // The connection is closed.
    tasks.drain(TIMEOUT).await;
    eventually("the connection is lost", TIMEOUT, async || {
        app.broker.consuming.state().is_err().then_some(())
    })
    .await;
    let report = app.backlog().report().await.unwrap();
    assert_eq!((report.broker, report.queues), (BrokerState::Unavailable, vec![]));
    app.stop().await;
}
