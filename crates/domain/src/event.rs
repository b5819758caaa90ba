//! What services tell each other.

use serde::{Serialize, de::DeserializeOwned};

/// Something that happened, as the body of an event. Its type ends in its version: a change that
/// an old reader would misread is a new type.
pub trait Event: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// For example `order.stored.v1`; also the routing key.
    const TYPE: &'static str;

    /// What it happened to.
    fn subject(&self) -> String;
}
