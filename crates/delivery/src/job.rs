//! A message as a sender finds it on a work queue.

use std::str::FromStr;

use bytes::Bytes;
use domain::kind::Kind;
use messaging::Incoming;
use platform::Timestamp;
use uuid::Uuid;

use crate::attempt::{Message, Reply};
use crate::engine::header;

/// One attempt to be made.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: Uuid,
    pub(crate) round: i32,
    pub(crate) number: i32,
    /// Another copy of it may be about: ask the ledger before sending it.
    pub(crate) doubtful: bool,
    pub(crate) message: Message,
}

/// Not one of ours.
#[derive(Debug, thiserror::Error)]
#[error("header `{0}` is missing or cannot be read")]
pub(crate) struct Unreadable(&'static str);

impl Job {
    pub(crate) fn read(kind: Kind, incoming: Incoming, now: Timestamp) -> Result<Self, Unreadable> {
        let headers = &incoming.headers;
        let id: Uuid = read(headers, header::DELIVERY)?;
        let lease_until: i64 = read(headers, header::LEASE_UNTIL)?;
        let number = read(headers, header::ATTEMPT)?;
        if number < 1 {
            return Err(Unreadable(header::ATTEMPT));
        }
        let recalled = find(headers, header::RECALLED).is_some();
        Ok(Self {
            id,
            round: read(headers, header::ROUND)?,
            number,
            doubtful: incoming.redelivered || recalled || lease_until <= now.timestamp_millis(),
            message: Message {
                id: id.to_string(),
                merchant: read(headers, header::MERCHANT)?,
                kind,
                event: read(headers, header::EVENT)?,
                sequence: read(headers, header::SEQUENCE)?,
                traceparent: find(headers, header::TRACEPARENT).map(str::to_owned),
                reply: reply(kind),
                body: Bytes::from(incoming.body),
            },
        })
    }
}

/// The answer to an exchange order names the merchant's own order; the others are only accepted.
fn reply(kind: Kind) -> Reply {
    match kind {
        Kind::ExchangeOrder => Reply::Needed,
        _ => Reply::Ignored,
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn read<T: FromStr>(headers: &[(String, String)], name: &'static str) -> Result<T, Unreadable> {
    find(headers, name).and_then(|value| value.parse().ok()).ok_or(Unreadable(name))
}
