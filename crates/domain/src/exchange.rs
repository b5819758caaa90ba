//! Exchange orders: what is sent instead of what comes back.

mod message;
mod outcome;
mod question;
mod reply;
mod stock;
mod variants;

#[cfg(test)]
mod tests;

pub use message::{
    ExchangeItem, ExchangeOrder, GiftCardItem, Item, Payment, ReturnItem, Unplaceable,
    exchange_order_schema,
};
pub use outcome::{ExchangeFailed, ExchangePlaced, FailureCause};
pub(crate) use question::has_placeholder;
pub use question::{InvalidVariantIdentifier, MissingPlaceholder, VariantIdentifier};
pub use reply::{ExchangeOrderResponse, OrderAmounts};
pub use stock::{StockCheck, VariantLookups, check_stock};
pub use variants::{Attribute, InvalidVariantsResponse, OfferedVariant, Variants, variants_schema};
