//! A subscription to one queue: receives messages in batches and acknowledges or rejects them.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use lapin::{
    Channel, Consumer,
    message::Delivery,
    options::{
        BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicQosOptions,
        BasicRejectOptions,
    },
    types::{AMQPValue, FieldTable},
};
use platform::MAX_BATCH_BYTES;

use crate::{
    connection::{BrokerConnection, BrokerError, Session, with_timeout},
    topology::short,
};

/// A received message.
#[derive(Debug)]
pub struct Incoming {
    /// Identifies the message on its subscription.
    pub delivery_tag: u64,
    pub redelivered: bool,
    /// How often the message returned to the queue, as counted by the broker.
    pub delivery_count: u32,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A consumer of one queue. After an error, unsettled messages return to the queue and the caller
/// opens a new subscription.
pub struct Subscription {
    channel: Channel,
    consumer: Consumer,
    session: Arc<Session>,
}

impl Subscription {
    /// Subscribes to a queue. Waits for a connection.
    pub async fn open(
        connection: &BrokerConnection,
        queue: &str,
        prefetch: u16,
    ) -> Result<Self, BrokerError> {
        let session = connection.clone().session().await?;
        let opened = async {
            let channel = session.channel().await?;
            with_timeout(channel.basic_qos(prefetch, BasicQosOptions::default())).await?;
            let options = BasicConsumeOptions::default();
            let none = FieldTable::default();
            let consumer =
                with_timeout(channel.basic_consume(short(queue), "".into(), options, none)).await?;
            Ok((channel, consumer))
        };
        let (channel, consumer) =
            opened.await.inspect_err(|_: &BrokerError| session.invalidate())?;
        Ok(Self { channel, consumer, session })
    }

    /// Waits for a message and returns it with those that have arrived already: up to `limit`
    /// messages, fewer if they reach `MAX_BATCH_BYTES`.
    pub async fn next(&mut self, limit: usize) -> Result<Vec<Incoming>, BrokerError> {
        self.next_as(limit, incoming).await
    }

    /// Like [`Self::next`], with each message converted.
    pub(crate) async fn next_as<T>(
        &mut self,
        limit: usize,
        convert: fn(Delivery) -> T,
    ) -> Result<Vec<T>, BrokerError> {
        let first = tokio::select! {
            () = self.session.ended() => None,
            first = self.consumer.next() => first,
        };
        let first = self.delivery(first)?;
        let mut bytes = first.data.len();
        let mut batch = vec![convert(first)];
        while batch.len() < limit
            && bytes < MAX_BATCH_BYTES
            && let Some(next) = self.consumer.next().now_or_never()
        {
            let next = self.delivery(next)?;
            bytes += next.data.len();
            batch.push(convert(next));
        }
        Ok(batch)
    }

    /// Cancels the consumer and requeues prefetched messages that [`Self::next`] has not returned.
    /// Returned messages can still be acknowledged.
    pub async fn cancel(&mut self) -> Result<(), BrokerError> {
        let tag = self.consumer.tag();
        self.respond(self.channel.basic_cancel(tag, BasicCancelOptions::default())).await?;
        while let Some(Some(prefetched)) = self.consumer.next().now_or_never() {
            let prefetched = self.delivery(Some(prefetched))?;
            self.requeue(prefetched.delivery_tag).await?;
        }
        Ok(())
    }

    fn delivery(&self, item: Option<lapin::Result<Delivery>>) -> Result<Delivery, BrokerError> {
        match item {
            Some(Ok(delivery)) => Ok(delivery),
            Some(Err(error)) => {
                self.session.invalidate();
                Err(error.into())
            }
            // The queue was deleted or the connection closed.
            None => {
                self.session.invalidate();
                Err(BrokerError::Down)
            }
        }
    }

    /// Acknowledges every message up to this one.
    pub async fn ack_up_to(&self, tag: u64) -> Result<(), BrokerError> {
        self.respond(self.channel.basic_ack(tag, BasicAckOptions { multiple: true })).await
    }

    /// Acknowledges one message.
    pub async fn ack(&self, tag: u64) -> Result<(), BrokerError> {
        self.respond(self.channel.basic_ack(tag, BasicAckOptions { multiple: false })).await
    }

    /// Returns a message to the queue, whose delivery limit may dead-letter it.
    pub async fn requeue(&self, tag: u64) -> Result<(), BrokerError> {
        self.respond(self.channel.basic_reject(tag, BasicRejectOptions { requeue: true })).await
    }

    /// Rejects a message into the dead-letter queue.
    pub async fn dead_letter(&self, tag: u64) -> Result<(), BrokerError> {
        self.respond(self.channel.basic_reject(tag, BasicRejectOptions { requeue: false })).await
    }

    async fn respond(
        &self,
        request: impl Future<Output = lapin::Result<()>>,
    ) -> Result<(), BrokerError> {
        with_timeout(request).await.inspect_err(|_| self.session.invalidate())
    }
}

pub(crate) fn incoming(delivery: Delivery) -> Incoming {
    let table = delivery.properties.headers().as_ref();
    let delivery_count = table.and_then(|table| match table.inner().get("x-delivery-count")? {
        AMQPValue::LongLongInt(count) => u32::try_from(*count).ok(),
        _ => None,
    });
    let headers = table.map_or_else(Vec::new, |table| {
        let text = |value: &AMQPValue| match value {
            AMQPValue::LongString(text) => Some(text.to_string()),
            AMQPValue::ShortString(text) => Some(text.to_string()),
            _ => None,
        };
        table
            .inner()
            .iter()
            .filter_map(|(name, value)| Some((name.to_string(), text(value)?)))
            .collect()
    });
    Incoming {
        delivery_tag: delivery.delivery_tag,
        redelivered: delivery.redelivered,
        delivery_count: delivery_count.unwrap_or_default(),
        headers,
        body: delivery.data,
    }
}
