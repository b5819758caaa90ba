//! Exchanges, queues and bindings, as data.
//!
//! Whenever a service connects, it declares the queues that it consumes and the queues that its events go
//! to. So no event is published before the queues of its consumers exist, and a deleted queue is declared
//! again.

use domain::{event::SUBSCRIPTIONS, message_kind::MessageKind};
use lapin::{
    Channel, ExchangeKind,
    options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable, LongString, ShortString},
};

/// Redeliveries of a message before RabbitMQ dead-letters it.
const DELIVERY_LIMIT: i32 = 5;
/// The topic exchange of all events.
const EVENTS_EXCHANGE: &str = "backhaul.events";
/// The topic exchange and the queue of events that wait for a locked row.
const WAITING: &str = "backhaul.waiting";
/// Milliseconds until a waiting event returns to the queue that its routing key names.
const WAITING_TIME: i32 = 5_000;

/// The services that publish each event.
const PUBLISHERS: [(&str, &[&str]); 16] = [
    ("merchant.changed.v1", &["auth"]),
    ("token.revoked.v1", &["auth"]),
    ("order.stored.v1", &["order-intake"]),
    ("order.stored_in_bulk.v1", &["order-intake"]),
    ("return.confirmed.v1", &["rma-engine"]),
    ("exchange.placed.v1", &["exchange"]),
    ("exchange.failed.v1", &["exchange"]),
    ("exchange.undeliverable.v1", &["exchange"]),
    ("exchange.renamed.v1", &["rma-engine"]),
    ("unit.received.v1", &["warehouse-notifier"]),
    ("delivery.dead.v1", &["exchange", "rma-engine", "warehouse-notifier"]),
    ("endpoint.paused.v1", &["auth"]),
    ("endpoint.health_changed.v1", &["exchange", "rma-engine", "warehouse-notifier"]),
    ("shopper.erased.v1", &["order-intake"]),
    ("returns.erased.v1", &["rma-engine"]),
    ("shopper.erasure_confirmed.v1", &["exchange", "rma-engine", "warehouse-notifier"]),
];

/// The qualified name of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange(pub String);

/// A queue. Its dead-letter queue is declared with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub name: String,
    /// Routing keys of [`Topology::events_exchange`] that are bound to this queue.
    pub bindings: Vec<&'static str>,
}

impl Queue {
    pub fn dead_letter_queue(&self) -> String {
        format!("{}.dead", self.name)
    }
}

/// The exchange and the queues of one installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    namespace: String,
    queues: Vec<Queue>,
}

impl Topology {
    /// A queue for each subscription of a service, and a work queue for each message kind.
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

    /// The part that a service uses: the queues that it consumes, the queues that its events go to, and the
    /// work queues of the message kinds that it delivers.
    pub fn of_service(service: &str, kinds: &[MessageKind], namespace: &str) -> Self {
        let mut topology = Self::backhaul(namespace);
        let own = topology.queues_of(service, kinds);
        topology.queues.retain(|queue| {
            own.contains(queue) || queue.bindings.iter().any(|event| publishes(service, event))
        });
        topology
    }

    /// A topology without queues.
    pub fn empty(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), queues: Vec::new() }
    }

    /// Adds the queue from which `service` consumes `event`.
    pub fn with_subscription(mut self, service: &str, event: &'static str) -> Self {
        let name = self.qualified(&format!("{service}.{event}"));
        self.queues.push(Queue { name, bindings: vec![event] });
        self
    }

    /// Adds a queue that messages are published to by name.
    pub fn with_queue(mut self, name: &str) -> Self {
        let name = self.qualified(name);
        self.queues.push(Queue { name, bindings: Vec::new() });
        self
    }

    pub fn events_exchange(&self) -> Exchange {
        Exchange(self.qualified(EVENTS_EXCHANGE))
    }

    /// The exchange of events that wait for a locked row. They return to the queue that their routing key
    /// names. A topic exchange, because RabbitMQ can limit the routing keys of a user only there.
    pub fn waiting_exchange(&self) -> Exchange {
        Exchange(self.qualified(WAITING))
    }

    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    /// The queues from which `service` consumes events, and the work queues of `kinds`.
    pub(crate) fn queues_of(&self, service: &str, kinds: &[MessageKind]) -> Vec<Queue> {
        let prefix = self.qualified(&format!("{service}."));
        let work_queues: Vec<_> = kinds.iter().map(|kind| self.qualified(kind.queue())).collect();
        let is_own =
            |queue: &&Queue| queue.name.starts_with(&prefix) || work_queues.contains(&queue.name);
        self.queues.iter().filter(is_own).cloned().collect()
    }

    /// The qualified name of the queue from which `service` consumes `event`.
    pub fn subscription_queue(&self, service: &str, event: &str) -> String {
        self.qualified(&format!("{service}.{event}"))
    }

    /// A name with the namespace in front.
    pub fn qualified(&self, name: &str) -> String {
        if self.namespace.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.namespace)
        }
    }

    pub(crate) async fn declare(&self, channel: &Channel) -> lapin::Result<()> {
        let events = self.events_exchange().0;
        let waiting = self.waiting_exchange().0;
        for exchange in [&events, &waiting] {
            declare_exchange(channel, exchange).await?;
        }
        declare_queue(channel, &waiting, waiting_arguments()).await?;
        bind_queue(channel, &waiting, &waiting, "#").await?;
        for queue in &self.queues {
            // No delivery limit: inspecting a dead letter counts as a delivery.
            declare_queue(channel, &queue.dead_letter_queue(), quorum_arguments()).await?;
            declare_queue(channel, &queue.name, queue_arguments(queue)).await?;
            for key in &queue.bindings {
                bind_queue(channel, &queue.name, &events, key).await?;
            }
        }
        Ok(())
    }

    /// Checks that everything exists, for a user without the permission to declare.
    pub(crate) async fn verify(&self, channel: &Channel) -> lapin::Result<()> {
        let passive = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
        let waiting = self.waiting_exchange().0;
        for exchange in [&self.events_exchange().0, &waiting] {
            let none = FieldTable::default();
            channel.exchange_declare(short(exchange), ExchangeKind::Topic, passive, none).await?;
        }
        inspect_queue(channel, &waiting).await?;
        for queue in &self.queues {
            for name in [&queue.name, &queue.dead_letter_queue()] {
                inspect_queue(channel, name).await?;
            }
        }
        Ok(())
    }
}

/// The numbers of messages and consumers of a queue. If the queue does not exist, the broker closes the
/// channel.
pub(crate) async fn inspect_queue(channel: &Channel, name: &str) -> lapin::Result<lapin::Queue> {
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(short(name), passive, FieldTable::default()).await
}

async fn declare_exchange(channel: &Channel, name: &str) -> lapin::Result<()> {
    let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(short(name), ExchangeKind::Topic, options, FieldTable::default()).await
}

async fn bind_queue(
    channel: &Channel,
    queue: &str,
    exchange: &str,
    key: &str,
) -> lapin::Result<()> {
    let options = QueueBindOptions::default();
    let none = FieldTable::default();
    channel.queue_bind(short(queue), short(exchange), short(key), options, none).await
}

async fn declare_queue(channel: &Channel, name: &str, arguments: FieldTable) -> lapin::Result<()> {
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(short(name), options, arguments).await?;
    Ok(())
}

fn publishes(service: &str, event: &str) -> bool {
    PUBLISHERS.iter().any(|(known, services)| *known == event && services.contains(&service))
}

fn quorum_arguments() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), long_string("quorum"));
    arguments
}

fn queue_arguments(queue: &Queue) -> FieldTable {
    let mut arguments = quorum_arguments();
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(DELIVERY_LIMIT));
    arguments.insert("x-dead-letter-routing-key".into(), long_string(&queue.dead_letter_queue()));
    dead_letter_safely(&mut arguments);
    arguments
}

/// Without a dead-letter routing key, an event that expires keeps its own: the queue that it came from.
fn waiting_arguments() -> FieldTable {
    let mut arguments = quorum_arguments();
    arguments.insert("x-message-ttl".into(), AMQPValue::LongInt(WAITING_TIME));
    dead_letter_safely(&mut arguments);
    arguments
}

/// Messages leave the queue only when the next queue has them.
fn dead_letter_safely(arguments: &mut FieldTable) {
    arguments.insert("x-dead-letter-exchange".into(), long_string(""));
    // RabbitMQ ignores at-least-once unless overflow is reject-publish.
    arguments.insert("x-dead-letter-strategy".into(), long_string("at-least-once"));
    arguments.insert("x-overflow".into(), long_string("reject-publish"));
}

fn long_string(text: &str) -> AMQPValue {
    AMQPValue::LongString(LongString::from(text))
}

pub(crate) fn short(text: &str) -> ShortString {
    ShortString::from(text)
}

#[cfg(test)]
mod tests;
