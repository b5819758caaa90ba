//! The limits of drop shipment messages.

use std::ops::RangeInclusive;

pub(super) const MAX_ITEMS: usize = 1_000;
pub(super) const QUANTITY: RangeInclusive<i64> = 1..=1_000_000;
