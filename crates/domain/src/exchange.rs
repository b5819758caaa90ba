//! Exchange orders: what is sent instead of what comes back.

mod outcome;

pub use outcome::{ExchangeFailed, ExchangePlaced, FailureCause};
