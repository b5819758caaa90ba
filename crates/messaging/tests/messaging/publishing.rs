//! The broker's word on each message.

use domain::event::Event as _;
use messaging::{BrokerConnection, BrokerError, Exchange, Message, NotQueued, Publisher, Topology};
use platform::Tasks;
use testkit::{Namespace, Servers, eventually};

use crate::{NoteWritten, SOON};

fn topology(namespace: &Namespace) -> Topology {
    Topology::empty(&namespace.name).with_subscription("listener", NoteWritten::TYPE)
}

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
async fn what_leads_to_no_queue_is_told_from_what_does() {
    let (namespace, tasks) = (Namespace::create(), Tasks::default());
    let topology = topology(&namespace);
    let link =
        BrokerConnection::start(&namespace.amqp_url().to_owned().into(), &topology, "test", &tasks);
    let publisher = Publisher::new(link);
    let leads_nowhere = |number: usize| number.is_multiple_of(3);
    let messages: Vec<_> = (0..300)
        .map(|number| {
            let key = if leads_nowhere(number) { "nobody.hears.v1" } else { NoteWritten::TYPE };
            message(topology.events_exchange(), key, number)
        })
        .collect();
    let expected: Vec<_> = (0..300)
        .map(|number| if leads_nowhere(number) { Err(NotQueued::Unroutable) } else { Ok(()) })
        .collect();
    for _ in 0..3 {
        // Each batch ends its connection: the queues are declared again.
        let publish = async || publisher.publish(&messages).await.ok();
        assert_eq!(eventually("a word on each", SOON, publish).await, expected);
    }
    tasks.drain(SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_without_room_is_waited_for_and_not_dialled_again() {
    let servers = tokio::task::spawn_blocking(Servers::start).await.unwrap();
    let namespace = Namespace::create_on(servers.amqp_url(), servers.rabbitmq_api_url());
    let (topology, tasks) = (topology(&namespace), Tasks::default());
    let link = BrokerConnection::start(&servers.amqp_url().into(), &topology, "test", &tasks);
    let publisher = Publisher::new(link.clone());
    let messages = [message(topology.events_exchange(), NoteWritten::TYPE, 1)];
    assert_eq!(publisher.publish(&messages).await.unwrap(), [Ok(())]);
    tokio::task::block_in_place(|| servers.fill());
    for _ in 0..3 {
        let refused = publisher.publish(&messages).await;
        assert!(matches!(refused, Err(BrokerError::Blocked)), "{refused:?}");
        link.state().expect("another connection would not be taken from either");
    }
    tokio::task::block_in_place(|| servers.drain());
    let publish = async || publisher.publish(&messages).await.ok();
    assert_eq!(eventually("room again", SOON, publish).await, [Ok(())]);
    assert!(tasks.drain(SOON).await);
    tokio::task::block_in_place(|| drop((namespace, servers)));
}
