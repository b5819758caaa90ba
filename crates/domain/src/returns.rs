//! Returns: what a shopper sends back, unit by unit, and what the merchant is told of it.

mod choice;
mod confirmed;

pub use choice::{ReturnMethod, UnitId};
pub use confirmed::{Chosen, ConfirmedUnit, GiftCardOffer, ReturnConfirmed, Variant};
