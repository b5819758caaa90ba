//! A message as a sender finds it on a work queue.

use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use chrono::TimeDelta;
use domain::message_kind::MessageKind;
use messaging::Incoming;
use platform::Timestamp;
use uuid::Uuid;

use crate::attempt::{Message, Reply};
use crate::engine::header;

/// A message that comes within this time of being queued is the only copy: what is given back is not
/// due before.
pub(crate) const FRESH: TimeDelta = TimeDelta::seconds(1);

/// One attempt to be made.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: Uuid,
    pub(crate) round: i32,
    pub(crate) number: i32,
    /// When it is sent again unless it is settled.
    pub(crate) lease_until: Timestamp,
    /// Another copy of it may be about: ask the ledger before sending it.
    pub(crate) maybe_duplicate: bool,
    pub(crate) message: Message,
}

/// Not one of ours.
#[derive(Debug, thiserror::Error)]
#[error("header `{0}` is missing or cannot be read")]
pub(crate) struct Unreadable(&'static str);

impl Job {
    /// Reads a message that was queued with this lease.
    pub(crate) fn read(
        kind: MessageKind,
        incoming: Incoming,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Self, Unreadable> {
        let headers = &incoming.headers;
        let id: Uuid = read(headers, header::DELIVERY)?;
        let lease_until = Timestamp::from_timestamp_millis(read(headers, header::LEASE_UNTIL)?)
            .ok_or(Unreadable(header::LEASE_UNTIL))?;
        let number = read(headers, header::ATTEMPT)?;
        if number < 1 {
            return Err(Unreadable(header::ATTEMPT));
        }
        let recalled = find(headers, header::RECALLED).is_some();
        let lease = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        let waited = lease.saturating_sub((lease_until - now).num_milliseconds());
        let fresh = waited < FRESH.num_milliseconds().min(lease);
        Ok(Self {
            id,
            round: read(headers, header::ROUND)?,
            number,
            lease_until,
            maybe_duplicate: incoming.redelivered || recalled || !fresh,
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
fn reply(kind: MessageKind) -> Reply {
    match kind {
        MessageKind::ExchangeOrder => Reply::Needed,
        _ => Reply::Ignored,
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn read<T: FromStr>(headers: &[(String, String)], name: &'static str) -> Result<T, Unreadable> {
    find(headers, name).and_then(|value| value.parse().ok()).ok_or(Unreadable(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(300);

    fn maybe_duplicate(waited_ms: i64, redelivered: bool, more: &[(&str, &str)]) -> bool {
        let queued_at = 1_800_000_000_000;
        let lease_until = (queued_at + 300_000).to_string();
        let id = Uuid::nil().to_string();
        let headers = [
            (header::DELIVERY, id.as_str()),
            (header::MERCHANT, "acme"),
            (header::EVENT, "rma.created"),
            (header::SEQUENCE, "1"),
            (header::ROUND, "1"),
            (header::ATTEMPT, "1"),
            (header::LEASE_UNTIL, &lease_until),
        ];
        let headers = headers.iter().chain(more);
        let incoming = Incoming {
            tag: 1,
            delivery_count: 0,
            redelivered,
            headers: headers.map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            body: Vec::new(),
        };
        let now = Timestamp::from_timestamp_millis(queued_at + waited_ms).unwrap();
        Job::read(MessageKind::Rma, incoming, LEASE, now).unwrap().maybe_duplicate
    }

    #[test]
    fn only_a_message_that_comes_at_once_is_the_only_copy_for_sure() {
        assert!(!maybe_duplicate(0, false, &[]));
        assert!(!maybe_duplicate(999, false, &[]));
        // The clocks of two machines differ.
        assert!(!maybe_duplicate(-50, false, &[]));
        assert!(maybe_duplicate(1000, false, &[]));
        assert!(maybe_duplicate(300_000, false, &[]));
        assert!(maybe_duplicate(0, true, &[]));
        assert!(maybe_duplicate(0, false, &[(header::RECALLED, "1")]));
    }
}
