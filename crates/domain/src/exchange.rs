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
pub(crate) use question::has_place;
pub use question::{BadIdentifier, NoPlace, VariantIdentifier};
pub use reply::{Amounts, Reply};
pub use stock::{Asked, InStock, sort_by_stock};
pub use variants::{Attribute, BadVariants, OfferedVariant, Variants, variants_schema};
