//! Erasure of a shopper's personal data: the rules, and the events by which all services take part.
//!
//! [`erase`] replaces names, e-mail addresses, phone numbers, addresses and notes in any JSON of this
//! system. Amounts, identifiers, times and country codes stay, and the JSON stays valid for its type.
//! order-intake publishes [`ShopperErased`], rma-engine decides which returns are erased and publishes
//! [`ReturnsErased`] to the other services, and each service reports with [`ErasureConfirmed`].
//!
//! See docs/decisions/erasing-shoppers.md.

mod email_digest;
mod events;
mod order_document;
mod personal_fields;
mod rules;

pub use email_digest::EmailDigest;
pub use events::{ErasureConfirmed, ErasureCounts, KeptReturn, ReturnsErased, ShopperErased};
pub use order_document::{erase_order, erase_order_document};
pub use personal_fields::{PERSONAL_COLUMNS, personal_fields, personal_values};
pub use rules::{
    ERASED, ERASED_EMAIL, erase, erase_email, erase_history, erase_mail, erase_report, erase_text,
    is_erased, is_report_about,
};

#[cfg(test)]
mod tests;
