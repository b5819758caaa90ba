//! Events that services publish to each other.

use serde::{Serialize, de::DeserializeOwned};

/// The data of an event. The type ends with a version; an incompatible change needs a new type.
pub trait Event: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The event type and routing key, for example `order.stored.v1`.
    const TYPE: &'static str;

    /// The CloudEvents subject.
    fn subject(&self) -> String;
}
