//! An event as we read it, and all that it said.

use domain::event::Event;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

pub(crate) struct Letter<E> {
    pub(crate) event: E,
    pub(crate) document: Value,
}

impl<'de, E: Event> Deserialize<'de> for Letter<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let document = Value::deserialize(deserializer)?;
        let event = E::deserialize(&document).map_err(D::Error::custom)?;
        Ok(Self { event, document })
    }
}

impl<E> Serialize for Letter<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document.serialize(serializer)
    }
}

impl<E: Event> Event for Letter<E> {
    const TYPE: &'static str = E::TYPE;

    fn subject(&self) -> String {
        self.event.subject()
    }
}
