//! The outcome of each published message.

use domain::event::Event as _;
use messaging::{BrokerConnection, BrokerError, Exchange, Message, NotQueued, Publisher};
use platform::Tasks;
use testkit::{Namespace, Servers, eventually};

use crate::test_app::{NoteWritten, QUEUE, TIMEOUT, topology};

fn message(exchange: Exchange, routing_key: &str, number: usize) -> Message {
    Message {
        exchange,
        routing_key: routing_key.to_owned(),
        id: format!("message {number}"),
        content_type: "application/json",
        headers: Vec::new(),
        body: b"{}".to_vec(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unroutable_messages_are_identified() {
    let namespace = Namespace::create();
    let tasks = Tasks::default();
    let topology = topology(&namespace);
    let connection =
        BrokerConnection::start(&namespace.amqp_url().to_owned().into(), &topology, "test", &tasks);
    let publisher = Publisher::new(connection);
    let is_unroutable = |number: usize| number.is_multiple_of(3);
    let messages: Vec<_> = (0..300)
        .map(|number| {
            let key = if is_unroutable(number) { "unbound.v1" } else { NoteWritten::TYPE };
            message(topology.events_exchange(), key, number)
        })
        .collect();
    let expected: Vec<_> = (0..300)
        .map(|number| if is_unroutable(number) { Err(NotQueued::Unroutable) } else { Ok(()) })
        .collect();
    for _ in 0..3 {
        // Each batch invalidates its connection, and the queues are declared again.
        let publish = async || publisher.publish(&messages).await.ok();
        assert_eq!(eventually("an outcome of each", TIMEOUT, publish).await, expected);
    }
    tasks.drain(TIMEOUT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_batch_are_queued_in_their_order() {
    let namespace = Namespace::create();
    let tasks = Tasks::default();
    let topology = topology(&namespace);
    let url = namespace.amqp_url().to_owned().into();
    let publisher = Publisher::new(BrokerConnection::start(&url, &topology, "test", &tasks));
    let exchange = topology.events_exchange();
    let messages: Vec<_> =
        (0..100).map(|number| message(exchange.clone(), NoteWritten::TYPE, number)).collect();
    assert_eq!(publisher.publish(&messages).await.unwrap(), vec![Ok(()); 100]);
    let queued = namespace.peek(QUEUE).await;
    let ids: Vec<_> = queued.iter().map(|it| it["properties"]["message_id"].as_str()).collect();
    let expected: Vec<_> = messages.iter().map(|message| Some(message.id.as_str())).collect();
    assert_eq!(ids, expected);
    tasks.drain(TIMEOUT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_the_broker_blocks_stays_open() {
    let servers = tokio::task::spawn_blocking(Servers::start).await.unwrap();
    let namespace = Namespace::create_on(servers.amqp_url(), servers.rabbitmq_api_url());
    let topology = topology(&namespace);
    let tasks = Tasks::default();
    let connection = BrokerConnection::start(&servers.amqp_url().into(), &topology, "test", &tasks);
    let publisher = Publisher::new(connection.clone());
    let messages = [message(topology.events_exchange(), NoteWritten::TYPE, 1)];
    assert_eq!(publisher.publish(&messages).await.unwrap(), [Ok(())]);
    tokio::task::block_in_place(|| servers.raise_memory_alarm());
    for _ in 0..3 {
        let refused = publisher.publish(&messages).await;
        assert!(matches!(refused, Err(BrokerError::Blocked)), "{refused:?}");
        connection.state().expect("a new connection would be blocked as well");
    }
    tokio::task::block_in_place(|| servers.clear_memory_alarm());
    let publish = async || publisher.publish(&messages).await.ok();
    assert_eq!(eventually("unblocked", TIMEOUT, publish).await, [Ok(())]);
    assert!(tasks.drain(TIMEOUT).await);
    tokio::task::block_in_place(|| drop((namespace, servers)));
}
