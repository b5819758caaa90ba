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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
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
    /// [`Self::sequence`] as a number; zero for an event that came from no outbox.
    pub fn sequence_number(&self) -> i64 {
        self.sequence.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}
