//! Exchange orders: new orders for the variants and gift cards that replace returned units.

mod check;
mod message;
mod outcome;
mod response;
mod variant_warnings;
mod variants;

#[cfg(test)]
mod tests;

pub use crate::variant_identifier::{
    InvalidVariantIdentifier, MissingPlaceholder, VariantIdentifier,
};
pub use check::{CheckedUnit, VariantCheck, VariantLookups, check_variants};
pub use message::{
    ExchangeItem, ExchangeOrder, GiftCardItem, Item, Payment, ReturnItem, Unplaceable,
    exchange_order_schema,
};
pub use outcome::{
    ExchangeFailed, ExchangePlaced, ExchangeRenamed, ExchangeUndeliverable, FailedItem,
    FailureReason, PlacedItem,
};
pub use response::{ExchangeOrderResponse, OrderAmounts};
pub use variants::{Attribute, InvalidVariantsResponse, OfferedVariant, Variants, variants_schema};
