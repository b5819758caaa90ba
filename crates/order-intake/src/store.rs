//! Every query of this service.

mod activity;
mod error;
mod known;
mod line_identifiers;
mod order_columns;
mod refunds;
mod reset;
mod search;
mod write;
mod write_mode;

pub(crate) use activity::{add_activity, count_orders, counts_since, order_times, rejected_orders};
pub(crate) use error::WriteError;
pub(crate) use known::known;
pub(crate) use reset::{OrderReset, lock_order, reset_order};
pub(crate) use search::{Search, search};
pub(crate) use write::{serialize_retries, write};
pub(crate) use write_mode::WriteMode;
