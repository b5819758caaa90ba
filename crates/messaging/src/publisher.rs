//! Publishing with confirms: a message is published when the broker has it in a queue.

use std::collections::HashSet;

use futures_util::future::try_join_all;
use lapin::{
    BasicProperties, Channel, Confirmation, PublisherConfirm,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::{AMQPValue, FieldTable, LongString, ShortString},
};
use tokio::sync::Mutex;

use crate::{
    connection::{BrokerConnection, BrokerError, Session, with_timeout},
    topology::{Exchange, short},
};

/// Messages that are written to the socket together. The client copies their bodies until then.
const MAX_WRITING: usize = 32;

/// The content type of events.
pub(crate) const EVENT_CONTENT_TYPE: &str = "application/cloudevents+json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The empty name is the default exchange, whose routing key is a queue name.
    pub exchange: Exchange,
    pub routing_key: String,
    /// Unique within a batch: it identifies a message that the broker returns.
    pub id: String,
    pub content_type: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// A message with all its properties.
pub(crate) struct Outgoing<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) routing_key: &'a str,
    pub(crate) properties: BasicProperties,
    pub(crate) body: &'a [u8],
}

impl<'a> From<&'a Message> for Outgoing<'a> {
    fn from(message: &'a Message) -> Self {
        Self {
            exchange: &message.exchange.0,
            routing_key: &message.routing_key,
            properties: properties(message),
            body: &message.body,
        }
    }
}

/// Reason why a message is in no queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotQueued {
    /// No queue is bound to its routing key.
    Unroutable,
    /// The broker rejected it, for example because a queue is full.
    Nacked,
}

/// Publishes over one channel, which is opened again after an error.
pub struct Publisher {
    connection: BrokerConnection,
    channel: Mutex<Option<ConfirmChannel>>,
}

struct ConfirmChannel {
    channel: Channel,
    session: std::sync::Arc<Session>,
}

impl Publisher {
    pub fn new(connection: BrokerConnection) -> Self {
        Self { connection, channel: Mutex::new(None) }
    }

    /// Publishes a batch and waits for the confirmation of each message. After an error the
    /// outcome of every message is unknown; publish them again.
    pub async fn publish(
        &self,
        messages: &[Message],
    ) -> Result<Vec<Result<(), NotQueued>>, BrokerError> {
        self.publish_outgoing(messages.iter().map(Outgoing::from).collect()).await
    }

    /// Like [`Self::publish`]. Messages that have the same id, or none, must have the same routing key: if the
    /// broker returns one of them, none is in a queue.
    pub(crate) async fn publish_outgoing(
        &self,
        messages: Vec<Outgoing<'_>>,
    ) -> Result<Vec<Result<(), NotQueued>>, BrokerError> {
        let mut channel = self.channel.lock().await;
        let current = self.take_usable(&mut channel).await?;
        // After an error the channel is dropped, because late confirms may arrive on it.
        let outcomes = send(&current.channel, messages)
            .await
            .map_err(|error| current.session.invalidate_after(error))?;
        if outcomes.contains(&Err(NotQueued::Unroutable)) {
            // A queue is missing. The next session declares it.
            current.session.invalidate();
        } else {
            *channel = Some(current);
        }
        Ok(outcomes)
    }

    /// Takes the channel, or opens a new one. Fails while the broker blocks it.
    async fn take_usable(
        &self,
        channel: &mut Option<ConfirmChannel>,
    ) -> Result<ConfirmChannel, BrokerError> {
        let current = match channel.take() {
            Some(current) if current.channel.status().connected() => current,
            _ => self.open().await?,
        };
        if let Err(blocked) = current.session.check_not_blocked() {
            *channel = Some(current);
            return Err(blocked);
        }
        Ok(current)
    }

    async fn open(&self) -> Result<ConfirmChannel, BrokerError> {
        // A leader that cannot reach the broker must yield to a replica that can.
        let session = self.connection.clone().session_with_timeout().await?;
        session.check_not_blocked()?;
        let opened = async {
            let channel = session.channel().await?;
            with_timeout(channel.confirm_select(ConfirmSelectOptions::default())).await?;
            Ok(channel)
        };
        let channel = opened.await.map_err(|error| session.invalidate_after(error))?;
        Ok(ConfirmChannel { channel, session })
    }
}

async fn send(
    channel: &Channel,
    messages: Vec<Outgoing<'_>>,
) -> Result<Vec<Result<(), NotQueued>>, BrokerError> {
    let ids: Vec<_> = messages.iter().map(|it| it.properties.message_id().clone()).collect();
    let mut confirms = Vec::with_capacity(messages.len());
    let mut messages = messages.into_iter();
    while !messages.as_slice().is_empty() {
        // Each of these futures waits until the thread of the connection has written its message. One after the other,
        // each message would cost two switches between threads and a write of its own.
        let writing: Vec<_> =
            messages.by_ref().take(MAX_WRITING).map(|message| write(channel, message)).collect();
        confirms.extend(with_timeout(try_join_all(writing)).await?);
    }
    let mut acks = Vec::with_capacity(confirms.len());
    let mut returned_ids = HashSet::new();
    for confirm in confirms {
        let (is_acked, returned) = match with_timeout(confirm).await? {
            Confirmation::Ack(returned) => (true, returned),
            Confirmation::Nack(returned) => (false, returned),
            Confirmation::NotRequested => (false, None),
        };
        acks.push(is_acked);
        // The library attaches a returned message to any confirm, not to its own.
        returned_ids.extend(returned.map(|it| it.delivery.properties.message_id().clone()));
    }
    let outcome = |(id, is_acked): (Option<ShortString>, bool)| match is_acked {
        _ if returned_ids.contains(&id) => Err(NotQueued::Unroutable),
        true => Ok(()),
        false => Err(NotQueued::Nacked),
    };
    Ok(ids.into_iter().zip(acks).map(outcome).collect())
}

async fn write(channel: &Channel, message: Outgoing<'_>) -> lapin::Result<PublisherConfirm> {
    let Outgoing { exchange, routing_key, properties, body } = message;
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    channel.basic_publish(short(exchange), short(routing_key), options, body, properties).await
}

fn properties(message: &Message) -> BasicProperties {
    const PERSISTENT: u8 = 2;
    let mut headers = FieldTable::default();
    for (name, value) in &message.headers {
        headers.insert((*name).into(), AMQPValue::LongString(LongString::from(value.as_str())));
    }
    BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_content_type(message.content_type.into())
        .with_message_id(short(&message.id))
        .with_headers(headers)
}
