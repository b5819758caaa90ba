//! Publishing with confirms: a message counts only when the broker has it in a queue.

use std::collections::HashSet;

use lapin::{
    BasicProperties, Channel, Confirmation,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::{AMQPValue, FieldTable, LongString},
};
use tokio::sync::Mutex;

use crate::{
    BrokerConnection, BrokerError, Exchange,
    connection::{Session, bounded},
    topology::short,
};

/// A message on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Empty is the broker's default exchange: the routing key is a queue's name.
    pub exchange: Exchange,
    pub routing_key: String,
    /// By it a message is known that leads to no queue: no two of a batch have the same.
    pub id: String,
    pub content_type: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// What the broker did not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotQueued {
    /// It leads to no queue.
    Unroutable,
    /// The broker refused it.
    Nacked,
}

/// Publishes over a link, on one channel that is made again when it breaks.
pub struct Publisher {
    link: BrokerConnection,
    open: Mutex<Option<Open>>,
}

struct Open {
    channel: Channel,
    session: std::sync::Arc<Session>,
}

impl Publisher {
    pub fn new(link: BrokerConnection) -> Self {
        Self { link, open: Mutex::new(None) }
    }

    /// Publishes all of them, then waits for the broker's word on each. An error means that
    /// nothing is known of any; publish them again.
    pub async fn publish(
        &self,
        messages: &[Message],
    ) -> Result<Vec<Result<(), NotQueued>>, BrokerError> {
        let mut open = self.open.lock().await;
        let current = self.current(&mut open).await?;
        // A channel on which something went wrong is not used again: late confirms may come on it.
        let words = send(&current.channel, messages)
            .await
            .map_err(|error| current.session.invalidate_after(error))?;
        if words.contains(&Err(NotQueued::Unroutable)) {
            // Something that leads nowhere means that a queue is gone; a new session declares it.
            current.session.invalidate();
        } else {
            *open = Some(current);
        }
        Ok(words)
    }

    /// Whether the broker would take messages now, for whoever has something to do before.
    pub async fn check_ready(&self) -> Result<(), BrokerError> {
        let mut open = self.open.lock().await;
        *open = Some(self.current(&mut open).await?);
        Ok(())
    }

    /// The channel, made again if it broke, unless the broker takes nothing over it.
    async fn current(&self, open: &mut Option<Open>) -> Result<Open, BrokerError> {
        let current = match open.take() {
            Some(current) if current.channel.status().connected() => current,
            _ => self.open().await?,
        };
        if let Err(blocked) = current.session.takes_messages() {
            *open = Some(current);
            return Err(blocked);
        }
        Ok(current)
    }

    async fn open(&self) -> Result<Open, BrokerError> {
        // Whoever leads must not hold on to that in vain: another replica may reach the broker.
        let session = self.link.clone().session_with_timeout().await?;
        session.takes_messages()?;
        let opened = async {
            let channel = session.channel().await?;
            bounded(channel.confirm_select(ConfirmSelectOptions::default())).await?;
            Ok(channel)
        };
        let channel = opened.await.map_err(|error| session.invalidate_after(error))?;
        Ok(Open { channel, session })
    }
}

async fn send(
    channel: &Channel,
    messages: &[Message],
) -> Result<Vec<Result<(), NotQueued>>, BrokerError> {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let mut confirms = Vec::with_capacity(messages.len());
    for message in messages {
        let (exchange, key) = (short(&message.exchange.0), short(&message.routing_key));
        let publish =
            channel.basic_publish(exchange, key, options, &message.body, properties(message));
        confirms.push(bounded(publish).await?);
    }
    let (mut taken, mut returned) = (Vec::with_capacity(confirms.len()), HashSet::new());
    for confirm in confirms {
        let (took, back) = match bounded(confirm).await? {
            Confirmation::Ack(back) => (true, back),
            Confirmation::Nack(back) => (false, back),
            Confirmation::NotRequested => (false, None),
        };
        taken.push(took);
        // The library hangs what came back on any confirm, not on that of the same message.
        returned.extend(back.and_then(|back| back.delivery.properties.message_id().clone()));
    }
    let word = |(message, took): (&Message, bool)| match took {
        _ if returned.contains(&short(&message.id)) => Err(NotQueued::Unroutable),
        true => Ok(()),
        false => Err(NotQueued::Nacked),
    };
    Ok(messages.iter().zip(taken).map(word).collect())
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
