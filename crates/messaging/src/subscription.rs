//! Taking messages out of one queue, in batches, each settled by its taker.

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

use crate::{
    BrokerConnection, BrokerError,
    connection::{Session, bounded},
    topology::short,
};

/// So many bytes are a batch, however few messages they are.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;

/// A message as it came.
#[derive(Debug)]
pub struct Incoming {
    /// Settles it, on the subscription it came from.
    pub delivery_tag: u64,
    pub redelivered: bool,
    /// How often it went back to the queue, as far as the broker counts.
    pub delivery_count: u32,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A place at a queue. When it breaks it is over: what was not settled goes back to the queue,
/// and the taker subscribes again.
pub struct Subscription {
    channel: Channel,
    consumer: Consumer,
    session: Arc<Session>,
}

impl Subscription {
    /// Waits for the broker if need be.
    pub async fn open(
        link: &BrokerConnection,
        queue: &str,
        prefetch: u16,
    ) -> Result<Self, BrokerError> {
        let session = link.clone().session().await?;
        let opened = async {
            let channel = session.channel().await?;
            bounded(channel.basic_qos(prefetch, BasicQosOptions::default())).await?;
            let (options, none) = (BasicConsumeOptions::default(), FieldTable::default());
            let consumer =
                bounded(channel.basic_consume(short(queue), "".into(), options, none)).await?;
            Ok((channel, consumer))
        };
        let (channel, consumer) =
            opened.await.inspect_err(|_: &BrokerError| session.invalidate())?;
        Ok(Self { channel, consumer, session })
    }

    /// Waits for a message, then takes what else is there already, up to `most` or a full load.
    pub async fn next(&mut self, most: usize) -> Result<Vec<Incoming>, BrokerError> {
        let first = tokio::select! {
            () = self.session.ended() => None,
            first = self.consumer.next() => first,
        };
        let first = self.delivery(first)?;
        let (mut bytes, mut batch) = (first.data.len(), vec![incoming(first)]);
        while batch.len() < most
            && bytes < MAX_BATCH_BYTES
            && let Some(ready) = self.consumer.next().now_or_never()
        {
            let ready = self.delivery(ready)?;
            bytes += ready.data.len();
            batch.push(incoming(ready));
        }
        Ok(batch)
    }

    /// Takes no more. What came and was not taken goes back to the queue at once; what was taken
    /// can still be settled.
    pub async fn cancel(&mut self) -> Result<(), BrokerError> {
        let tag = self.consumer.tag();
        self.settle(self.channel.basic_cancel(tag, BasicCancelOptions::default())).await?;
        while let Some(Some(came)) = self.consumer.next().now_or_never() {
            let untaken = self.delivery(Some(came))?;
            self.requeue(untaken.delivery_tag).await?;
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
            // The queue was deleted, or the connection went.
            None => {
                self.session.invalidate();
                Err(BrokerError::Down)
            }
        }
    }

    /// Done with every message up to and including this one.
    pub async fn ack_up_to(&self, tag: u64) -> Result<(), BrokerError> {
        self.settle(self.channel.basic_ack(tag, BasicAckOptions { multiple: true })).await
    }

    /// Done with this one.
    pub async fn ack(&self, tag: u64) -> Result<(), BrokerError> {
        self.settle(self.channel.basic_ack(tag, BasicAckOptions { multiple: false })).await
    }

    /// Not now: it comes again, until the queue's delivery limit puts it aside.
    pub async fn requeue(&self, tag: u64) -> Result<(), BrokerError> {
        self.settle(self.channel.basic_reject(tag, BasicRejectOptions { requeue: true })).await
    }

    /// Not ever: it goes to the dead-letter queue.
    pub async fn dead_letter(&self, tag: u64) -> Result<(), BrokerError> {
        self.settle(self.channel.basic_reject(tag, BasicRejectOptions { requeue: false })).await
    }

    async fn settle(
        &self,
        asked: impl Future<Output = lapin::Result<()>>,
    ) -> Result<(), BrokerError> {
        bounded(asked).await.inspect_err(|_| self.session.invalidate())
    }
}

fn incoming(delivery: Delivery) -> Incoming {
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
