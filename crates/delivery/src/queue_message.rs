//! A message on a work queue: one attempt to make.

use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use chrono::TimeDelta;
use domain::message_kind::{MessageKind, MessageVersion};
use messaging::Incoming;
use platform::{MemoryPermit, Timestamp};
use uuid::Uuid;

use crate::attempt::{Message, ResponseBody};

/// Headers of a message on a work queue. A dead letter has more, see `dead_letters`.
pub(crate) mod header {
    pub(crate) const DELIVERY: &str = "delivery-id";
    pub(crate) const MERCHANT: &str = "merchant";
    pub(crate) const VERSION: &str = "version";
    pub(crate) const EVENT: &str = "event";
    pub(crate) const SEQUENCE: &str = "sequence";
    pub(crate) const REPLAY_NUMBER: &str = "replay-number";
    pub(crate) const ATTEMPT: &str = "attempt";
    /// Present if the message was queued before, so that another copy may exist.
    pub(crate) const RELEASES: &str = "requeues";
    pub(crate) const LEASED_UNTIL: &str = "leased-until";
    /// Present if the claims of the message's poll filled the window of its endpoint.
    pub(crate) const WINDOW_FULL: &str = "window-full";
    pub(crate) const TRACEPARENT: &str = "traceparent";
}

/// Time after which a delivery is due again that left the broker without a result. A message that arrives within
/// this time after it was queued is therefore the first copy and no duplicate.
pub(crate) const RELEASED_CLAIM_DELAY: TimeDelta = TimeDelta::seconds(1);

#[derive(Debug)]
pub(crate) struct QueueMessage {
    pub(crate) id: Uuid,
    pub(crate) replay_number: i32,
    /// 1 is the first attempt.
    pub(crate) attempt_number: i32,
    /// The message is sent again if it is not settled by then.
    pub(crate) leased_until: Timestamp,
    /// The sender must check the claim first: another copy of the message may exist.
    pub(crate) maybe_duplicate: bool,
    /// The claims of the message's poll filled the window of its endpoint: only then may its success grow the
    /// window.
    pub(crate) is_window_full: bool,
    pub(crate) tag: DeliveryTag,
    pub(crate) content: Message,
    /// Memory of the message.
    #[expect(dead_code, reason = "released when the message is dropped")]
    pub(crate) permit: Option<MemoryPermit>,
}

/// A delivery tag and the subscription that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeliveryTag {
    pub(crate) subscription: u64,
    pub(crate) tag: u64,
}

/// Identifies an attempt: message, replay number, attempt number.
pub(crate) type AttemptKey = (Uuid, i32, i32);

#[derive(Debug, thiserror::Error)]
#[error("header `{0}` is missing or invalid")]
pub(crate) struct InvalidHeader(&'static str);

impl QueueMessage {
    /// Parses a message from the queue of `kind`. `lease` is the duration of its lease.
    pub(crate) fn parse(
        kind: MessageKind,
        incoming: Incoming,
        subscription: u64,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Self, InvalidHeader> {
        let headers = &incoming.headers;
        let id: Uuid = parse(headers, header::DELIVERY)?;
        let leased_until = Timestamp::from_timestamp_millis(parse(headers, header::LEASED_UNTIL)?)
            .ok_or(InvalidHeader(header::LEASED_UNTIL))?;
        let attempt_number = parse(headers, header::ATTEMPT)?;
        if attempt_number < 1 {
            return Err(InvalidHeader(header::ATTEMPT));
        }
        let was_released = find(headers, header::RELEASES).is_some();
        let lease = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        let age = lease.saturating_sub((leased_until - now).num_milliseconds());
        let is_fresh = age < RELEASED_CLAIM_DELAY.num_milliseconds().min(lease);
        Ok(Self {
            id,
            replay_number: parse(headers, header::REPLAY_NUMBER)?,
            attempt_number,
            leased_until,
            maybe_duplicate: incoming.redelivered || was_released || !is_fresh,
            is_window_full: find(headers, header::WINDOW_FULL).is_some(),
            tag: DeliveryTag { subscription, tag: incoming.delivery_tag },
            content: Message {
                id: id.to_string(),
                merchant: parse(headers, header::MERCHANT)?,
                kind,
                version: MessageVersion(parse(headers, header::VERSION)?),
                event: parse(headers, header::EVENT)?,
                sequence: parse(headers, header::SEQUENCE)?,
                traceparent: find(headers, header::TRACEPARENT).map(str::to_owned),
                response_body: response_body(kind),
                body: Bytes::from(incoming.body),
            },
            permit: None,
        })
    }

    pub(crate) fn key(&self) -> AttemptKey {
        (self.id, self.replay_number, self.attempt_number)
    }
}

/// The response to an exchange order contains the merchant's order number, and that to a label request the label.
fn response_body(kind: MessageKind) -> ResponseBody {
    match kind {
        MessageKind::ExchangeOrder | MessageKind::LabelRequest => ResponseBody::Required,
        _ => ResponseBody::Ignored,
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn parse<T: FromStr>(headers: &[(String, String)], name: &'static str) -> Result<T, InvalidHeader> {
    find(headers, name).and_then(|value| value.parse().ok()).ok_or(InvalidHeader(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(300);

    fn maybe_duplicate(age_ms: i64, redelivered: bool, more: &[(&str, &str)]) -> bool {
        let queued_at = 1_800_000_000_000;
        let leased_until = (queued_at + 300_000).to_string();
        let id = Uuid::nil().to_string();
        let headers = [
            (header::DELIVERY, id.as_str()),
            (header::MERCHANT, "acme"),
            (header::VERSION, "3"),
            (header::EVENT, "rma.created"),
            (header::SEQUENCE, "1"),
            (header::REPLAY_NUMBER, "1"),
            (header::ATTEMPT, "1"),
            (header::LEASED_UNTIL, &leased_until),
        ];
        let headers = headers.iter().chain(more);
        let incoming = Incoming {
            delivery_tag: 1,
            delivery_count: 0,
            redelivered,
            headers: headers.map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            body: Vec::new(),
        };
        let now = Timestamp::from_timestamp_millis(queued_at + age_ms).unwrap();
        QueueMessage::parse(MessageKind::Rma, incoming, 1, LEASE, now).unwrap().maybe_duplicate
    }

    #[test]
    fn only_a_fresh_first_copy_is_no_duplicate() {
        assert!(!maybe_duplicate(0, false, &[]));
        assert!(!maybe_duplicate(999, false, &[]));
        // The clocks of two machines differ.
        assert!(!maybe_duplicate(-50, false, &[]));
        assert!(maybe_duplicate(1000, false, &[]));
        assert!(maybe_duplicate(300_000, false, &[]));
        assert!(maybe_duplicate(0, true, &[]));
        assert!(maybe_duplicate(0, false, &[(header::RELEASES, "1")]));
    }
}
