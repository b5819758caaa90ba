//! The broker's word on each message.

use domain::event::Event as _;
use messaging::{Exchange, Link, Message, Publisher, Topology, Undelivered};
use platform::Tasks;
use testkit::{Namespace, eventually};

use crate::{NoteWritten, SOON};

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
    let topology = Topology::empty(&namespace.name).subscribe("listener", NoteWritten::TYPE);
    let link = Link::start(&namespace.amqp_url().to_owned().into(), &topology, "test", &tasks);
    let publisher = Publisher::new(link);
    let leads_nowhere = |number: usize| number.is_multiple_of(3);
    let messages: Vec<_> = (0..300)
        .map(|number| {
            let key = if leads_nowhere(number) { "nobody.hears.v1" } else { NoteWritten::TYPE };
            message(topology.events(), key, number)
        })
        .collect();
    let expected: Vec<_> = (0..300)
        .map(|number| if leads_nowhere(number) { Err(Undelivered::Unroutable) } else { Ok(()) })
        .collect();
    for _ in 0..3 {
        // Each batch ends its connection: the queues are declared again.
        let publish = async || publisher.publish(&messages).await.ok();
        assert_eq!(eventually("a word on each", SOON, publish).await, expected);
    }
    tasks.drain(SOON).await;
}
