//! Every query of this service.

mod activity;
mod erase_orders;
mod erasure_views;
mod erasures;
mod error;
mod line_identifiers;
mod load_stored;
mod locked_orders;
mod order_columns;
mod refunds;
mod reset;
mod retention;
mod search;
mod write;
mod write_mode;

pub(crate) use activity::{add_activity, count_orders, counts_since, order_times, rejected_orders};
pub(crate) use erase_orders::{erase_orders, orders_of_shopper, release_placeholders};
pub(crate) use erasure_views::{
    ConfirmationRow, ErasureRow, Selected, confirmations, erasures, kept_returns,
};
pub(crate) use erasures::{
    NewErasure, RunningErasure, confirm_erasure, finish_batch, insert_erasure, is_any_due,
    lock_running, next_orders, postpone_erasure,
};
pub(crate) use error::WriteError;
pub(crate) use load_stored::load_stored;
pub(crate) use locked_orders::{lock_orders, locked_orders};
pub(crate) use reset::{OrderReset, lock_order, reset_order};
pub(crate) use retention::{OrderAge, advance_scan, lock_scan, order_ages};
pub(crate) use search::{Search, search};
pub(crate) use write::{serialize_retries, write};
pub(crate) use write_mode::WriteMode;
