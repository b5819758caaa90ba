//! Claims of received messages: whether they still hold.

use std::collections::HashMap;

use platform::{
    chain,
    database::{DatabaseError, Pool},
};
use uuid::Uuid;

use crate::engine::{Engine, reconnect_backoff};
use crate::queue_message::QueueMessage;
use crate::store;

/// Drops the messages that no longer wait for exactly this attempt, and copies of a message that was queued
/// again since: otherwise two senders might send both. Waits until the database is available.
pub(super) async fn still_claimed(pool: &Pool, messages: Vec<QueueMessage>) -> Vec<QueueMessage> {
    let ids: Vec<_> = messages.iter().map(|message| message.id).collect();
    let mut backoff = reconnect_backoff();
    let queued = loop {
        match load_queued(pool, &ids).await {
            Ok(queued) => break queued,
            Err(error) => {
                tracing::warn!(error = chain(&error), "checking for duplicates failed");
                tokio::time::sleep(backoff.pause()).await;
            }
        }
    };
    let is_claimed = |message: &QueueMessage| {
        queued.get(&message.id).is_some_and(|queued| {
            let leased_until = queued.leased_until.map(|at| at.timestamp_millis());
            queued.replay_number == message.replay_number
                && queued.attempts == message.attempt_number - 1
                && leased_until == Some(message.leased_until.timestamp_millis())
        })
    };
    messages.into_iter().filter(is_claimed).collect()
}

async fn load_queued(
    pool: &Pool,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, store::Queued>, DatabaseError> {
    let mut conn = pool.get().await?;
    store::still_queued(&mut conn, ids).await
}

/// Removes the messages whose endpoint was paused after they were queued, and returns their ids.
pub(super) fn extract_paused(engine: &Engine, messages: &mut Vec<QueueMessage>) -> Vec<Uuid> {
    let is_paused = |message: &mut QueueMessage| {
        engine.is_paused(&message.content.merchant, message.content.kind)
    };
    messages.extract_if(.., is_paused).map(|message| message.id).collect()
}
