//! An event together with its JSON.

use domain::event::Event;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

/// The replica stores the JSON, with fields that only a newer version of this program can read.
pub(crate) struct RawEvent<E> {
    pub(crate) event: E,
    pub(crate) json: Value,
}

impl<'de, E: Event> Deserialize<'de> for RawEvent<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(deserializer)?;
        let event = E::deserialize(&json).map_err(D::Error::custom)?;
        Ok(Self { event, json })
    }
}

impl<E> Serialize for RawEvent<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<E: Event> Event for RawEvent<E> {
    const TYPE: &'static str = E::TYPE;

    fn subject(&self) -> String {
        self.event.subject()
    }
}
