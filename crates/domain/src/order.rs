//! The Returns Portal Order message: its fields, its rules, and how a snapshot updates the stored
//! order.
//!
//! [`OrderMessage::read`] validates a message and reports every invalid field of every order.
//! [`OrderSnapshot::decide`] compares one order with the stored one. Amounts that do not add up
//! are warnings by default, because merchants round differently.
//!
//! An [`Order`] has no unknown fields, transactions or discounts. The service that stores an order
//! also stores the original document.
//!
//! See docs/decisions/order-snapshots.md.

mod address;
mod customer;
mod limits;
mod line;
mod line_index;
mod message;
mod model;
mod outcome;
mod read_refund;
mod refund;
mod refunded_amounts;
pub mod sample;
mod schema;
mod stored;
mod sums;

pub use address::Address;
pub(crate) use address::country_code;
pub use customer::{CUSTOMER_ALIAS, Customer};
pub use limits::{MAX_LINES, MAX_ORDER_UNITS, MAX_ORDERS};
pub use line::OrderLine;
pub use message::{OrderMessage, OrderPolicy, OrderSnapshot};
pub use model::{Order, OrderStatus};
pub use outcome::{OrderOutcome, OrderVersion, RefundVersion};
pub use refund::{IGNORE_REFUND, Refund, RefundLine};
pub use schema::{
    ReturnsPortalOrder, ReturnsPortalOrderMessage, message_schema, stored_in_bulk_schema,
    stored_schema,
};
pub use stored::{OrderStored, OrderStoredInBulk};

#[cfg(test)]
mod tests;
