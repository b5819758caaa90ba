//! Sample messages, for tests of endpoints, for documents and for the command line.

mod events;
mod messages;

pub use events::{EVENTS, SampleEvent};
pub use messages::sample;
