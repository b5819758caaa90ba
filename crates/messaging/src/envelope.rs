//! An event on the wire: CloudEvents 1.0, structured JSON.

use chrono::{DateTime, Utc};
use domain::event::Event;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An event with everything around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope<T> {
    pub specversion: String,
    pub id: Uuid,
    pub source: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub subject: String,
    pub time: DateTime<Utc>,
    pub datacontenttype: String,
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
            kind: T::TYPE.to_owned(),
            subject: data.subject(),
            time,
            datacontenttype: "application/json".to_owned(),
            traceparent: platform::telemetry::traceparent(),
            data,
        }
    }
}

/// An event as a handler gets it.
pub type Received<T> = Envelope<T>;
