//! Exchanges, queues and bindings, as data.
//!
//! Every service declares the whole of it whenever it connects. So a service that was never
//! started yet has its queues, and finds in them what happened before it came; and a queue that
//! somebody deleted is back a moment later.

use domain::message_kind::MessageKind;
use lapin::{
    Channel, ExchangeKind,
    options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable, LongString, ShortString},
};

/// An event that fails is tried so many times more, then it is put aside.
const DELIVERY_LIMIT: i32 = 5;
/// The exchange all events go through.
const EVENTS: &str = "backhaul.events";

/// Who hears what.
const SUBSCRIPTIONS: [(&str, &[&str]); 5] = [
    ("order-intake", &["merchant.changed.v1", "token.revoked.v1"]),
    (
        "rma-engine",
        &[
            "merchant.changed.v1",
            "token.revoked.v1",
            "order.stored.v1",
            "unit.received.v1",
            "exchange.placed.v1",
            "exchange.failed.v1",
        ],
    ),
    ("exchange", &["merchant.changed.v1", "token.revoked.v1", "return.confirmed.v1"]),
    ("warehouse-notifier", &["merchant.changed.v1", "token.revoked.v1"]),
    // Read by people and by whatever alerts them.
    ("operators", &["delivery.dead.v1"]),
];

/// An exchange's full name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange(pub String);

/// A queue and, beside it, the one for what it could not get rid of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub name: String,
    /// Routing keys of [`Topology::events_exchange`] that lead here.
    pub bindings: Vec<&'static str>,
}

impl Queue {
    /// Where an operator finds what was put aside.
    pub fn dead_letter_queue(&self) -> String {
        format!("{}.dead", self.name)
    }
}

/// Everything Backhaul has in a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    namespace: String,
    queues: Vec<Queue>,
}

impl Topology {
    /// The product's own.
    pub fn backhaul(namespace: &str) -> Self {
        let mut topology = Self::empty(namespace);
        for (service, events) in SUBSCRIPTIONS {
            for event in events {
                topology = topology.with_subscription(service, event);
            }
        }
        MessageKind::ALL
            .into_iter()
            .fold(topology, |topology, kind| topology.with_queue(kind.queue()))
    }

    /// A broker with nothing in it.
    pub fn empty(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), queues: Vec::new() }
    }

    /// With a queue in which `service` hears of `event`.
    pub fn with_subscription(mut self, service: &str, event: &'static str) -> Self {
        let name = self.qualified(&format!("{service}.{event}"));
        self.queues.push(Queue { name, bindings: vec![event] });
        self
    }

    /// With a queue that is published to by name.
    pub fn with_queue(mut self, name: &str) -> Self {
        let name = self.qualified(name);
        self.queues.push(Queue { name, bindings: Vec::new() });
        self
    }

    pub fn events_exchange(&self) -> Exchange {
        Exchange(self.qualified(EVENTS))
    }

    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    /// The full name of the queue in which `service` hears of `event`.
    pub fn subscription_queue(&self, service: &str, event: &str) -> String {
        self.qualified(&format!("{service}.{event}"))
    }

    /// A name as it stands in the broker.
    pub fn qualified(&self, name: &str) -> String {
        if self.namespace.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.namespace)
        }
    }

    pub(crate) async fn declare(&self, channel: &Channel) -> lapin::Result<()> {
        let events = self.events_exchange().0;
        let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        channel
            .exchange_declare(short(&events), ExchangeKind::Topic, durable, FieldTable::default())
            .await?;
        for queue in &self.queues {
            // A dead letter stays until someone takes it: no limit, because looking counts.
            declare_queue(channel, &queue.dead_letter_queue(), quorum()).await?;
            declare_queue(channel, &queue.name, live_queue(queue)).await?;
            for key in &queue.bindings {
                let (queue, exchange) = (short(&queue.name), short(&events));
                let none = FieldTable::default();
                channel
                    .queue_bind(queue, exchange, short(key), QueueBindOptions::default(), none)
                    .await?;
            }
        }
        Ok(())
    }

    /// Whether everything is there, for a user who has no right to declare anything.
    pub(crate) async fn verify(&self, channel: &Channel) -> lapin::Result<()> {
        let there = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
        let (events, none) = (self.events_exchange().0, FieldTable::default());
        channel.exchange_declare(short(&events), ExchangeKind::Topic, there, none).await?;
        for queue in &self.queues {
            for name in [&queue.name, &queue.dead_letter_queue()] {
                let there = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
                channel.queue_declare(short(name), there, FieldTable::default()).await?;
            }
        }
        Ok(())
    }
}

async fn declare_queue(channel: &Channel, name: &str, arguments: FieldTable) -> lapin::Result<()> {
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(short(name), options, arguments).await?;
    Ok(())
}

fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), words("quorum"));
    arguments
}

fn live_queue(queue: &Queue) -> FieldTable {
    let mut arguments = quorum();
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(DELIVERY_LIMIT));
    arguments.insert("x-dead-letter-exchange".into(), words(""));
    arguments.insert("x-dead-letter-routing-key".into(), words(&queue.dead_letter_queue()));
    // Without reject-publish the strategy would silently be at-most-once.
    arguments.insert("x-dead-letter-strategy".into(), words("at-least-once"));
    arguments.insert("x-overflow".into(), words("reject-publish"));
    arguments
}

fn words(text: &str) -> AMQPValue {
    AMQPValue::LongString(LongString::from(text))
}

pub(crate) fn short(text: &str) -> ShortString {
    ShortString::from(text)
}

#[cfg(test)]
mod tests;
