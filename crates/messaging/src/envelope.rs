//! The envelope of an event: CloudEvents 1.0, structured JSON.

use chrono::{DateTime, Utc};
use domain::event::Event;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An event and its CloudEvents attributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope<T> {
    pub specversion: String,
    pub id: Uuid,
    pub source: String,
    #[serde(rename = "type")]
    pub event_type: String,
    pub subject: String,
    pub time: DateTime<Utc>,
    pub datacontenttype: String,
    /// The event's outbox sequence number, added by the relay. It grows from event to event of a
    /// source. If the source locks a row before it appends the events about it, the later event
    /// has the higher number, whichever arrives first.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "sequence_text")]
    pub sequence: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    pub data: T,
}

impl<'a, T: Event> Envelope<&'a T> {
    pub fn new(service: &str, time: DateTime<Utc>, data: &'a T) -> Self {
        Self {
            specversion: "1.0".to_owned(),
            id: Uuid::now_v7(),
            source: format!("/backhaul/{service}"),
            event_type: T::TYPE.to_owned(),
            subject: data.subject(),
            time,
            datacontenttype: "application/json".to_owned(),
            sequence: None,
            traceparent: platform::telemetry::traceparent(),
            data,
        }
    }
}

impl<T> Envelope<T> {
    /// [`Self::sequence`]; zero for an event that came from no outbox.
    pub fn sequence_number(&self) -> i64 {
        self.sequence.unwrap_or(0)
    }
}

/// A sequence number as CloudEvents want it: a text of 19 digits, so that texts sort like their numbers. An event
/// with another text is unreadable: as an event without a number it would be the oldest of all.
mod sequence_text {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        sequence: &Option<i64>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match sequence {
            Some(number) => to.collect_str(&format_args!("{number:019}")),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use domain::access::{Revocation, Revoked};
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_with_an_unreadable_sequence_number_is_unreadable() {
        let revoked = Revoked::Client("c".to_owned());
        let revocation = Revocation { revoked, expires_at: DateTime::UNIX_EPOCH };
        let mut event = json!(Envelope::new("test", DateTime::UNIX_EPOCH, &revocation));
        let mut read = |sequence: serde_json::Value| {
            event["sequence"] = sequence;
            let read = serde_json::from_value::<Envelope<Revocation>>(event.clone());
            read.map(|event| event.sequence_number()).ok()
        };
        assert_eq!(read(json!(null)), Some(0));
        assert_eq!(read(json!("0000000000000000007")), Some(7));
        assert_eq!(read(json!("seven")), None);
    }
}
