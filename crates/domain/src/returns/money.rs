//! Money of returns, to the cent: no amount is ever rounded away or made up.
//!
//! The invariant: whatever is split, the parts sum to the whole, and what a unit was once given
//! never changes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{RefundType, ReturnMethod};
use crate::merchant::ReturnPolicy;
use crate::order::OrderLine;

/// A unit's part of its line, or a line's whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Amounts {
    pub product_amount_cents: i64,
    pub discount_amount_cents: i64,
    pub tax_amount_cents: i64,
}

impl Amounts {
    /// What the shopper paid for it: product less discount plus tax, never below zero.
    pub fn paid(self) -> i64 {
        (self.product_amount_cents - self.discount_amount_cents + self.tax_amount_cents).max(0)
    }

    /// What a line says, except that a discount is at most what it is taken off.
    pub fn of_line(line: &OrderLine) -> Self {
        Self {
            product_amount_cents: line.product_amount_cents,
            discount_amount_cents: line.discount_amount_cents,
            tax_amount_cents: line.tax_amount_cents,
        }
        .capped()
    }

    /// What remains once `taken` is taken, nothing below zero.
    #[must_use]
    pub fn less(self, taken: Self) -> Self {
        Self {
            product_amount_cents: (self.product_amount_cents - taken.product_amount_cents).max(0),
            discount_amount_cents: (self.discount_amount_cents - taken.discount_amount_cents)
                .max(0),
            tax_amount_cents: (self.tax_amount_cents - taken.tax_amount_cents).max(0),
        }
        .capped()
    }

    /// Divides among so many units. Each amount sums to its whole, and so does what was paid,
    /// which is itself the largest-remainder split of what was paid in all: the odd cents of the
    /// tax begin where those of the product end, and those of the discount run back from there.
    pub fn among(self, units: usize) -> Vec<Self> {
        let Ok(count) = i64::try_from(units) else { return Vec::new() };
        if count == 0 {
            return Vec::new();
        }
        let (product, odd_product) = shared(self.product_amount_cents, count);
        let (tax, odd_tax) = shared(self.tax_amount_cents, count);
        let (discount, odd_discount) = shared(self.discount_amount_cents, count);
        let end = (odd_product + odd_tax) % count;
        // Whether a position lies in the run of `length` that begins at `start`, around the end.
        let within = |position: i64, start: i64, length: i64| {
            i64::from((position - start).rem_euclid(count) < length)
        };
        let part = |position| Self {
            product_amount_cents: product + within(position, 0, odd_product),
            tax_amount_cents: tax + within(position, odd_product, odd_tax),
            discount_amount_cents: discount + within(position, end - odd_discount, odd_discount),
        };
        (0..count).map(part).collect()
    }

    fn capped(self) -> Self {
        let most = self.product_amount_cents + self.tax_amount_cents;
        Self { discount_amount_cents: self.discount_amount_cents.min(most), ..self }
    }
}

impl std::iter::Sum for Amounts {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), |sum, it| Self {
            product_amount_cents: sum.product_amount_cents + it.product_amount_cents,
            discount_amount_cents: sum.discount_amount_cents + it.discount_amount_cents,
            tax_amount_cents: sum.tax_amount_cents + it.tax_amount_cents,
        })
    }
}

fn shared(total: i64, count: i64) -> (i64, i64) {
    (total.div_euclid(count), total.rem_euclid(count))
}

/// Who gets what of a unit's refund; the estimate is the sum of the other two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefundFinancials {
    /// All that can be refunded for the unit.
    #[schema(minimum = 0)]
    pub estimated_refund_amount_cents: i64,
    /// What the service is paid because the shopper got something else at once.
    #[schema(minimum = 0)]
    pub service_refund_amount_cents: i64,
    /// What the shopper gets back.
    #[schema(minimum = 0)]
    pub shopper_refund_amount_cents: i64,
}

impl RefundFinancials {
    pub fn new(amounts: Amounts, refund_type: RefundType) -> Self {
        let paid = amounts.paid();
        let (service, shopper) = match refund_type {
            RefundType::Refund => (0, paid),
            RefundType::EvenExchange | RefundType::UnevenExchange => (paid, 0),
        };
        Self {
            estimated_refund_amount_cents: paid,
            service_refund_amount_cents: service,
            shopper_refund_amount_cents: shopper,
        }
    }
}

impl ReturnPolicy {
    /// What a return by this method costs the shopper, or `None` when the method is not offered.
    /// `types` are those of all its units.
    pub fn return_shipping_cost(
        &self,
        method: ReturnMethod,
        types: impl IntoIterator<Item = RefundType>,
    ) -> Option<i64> {
        let offer = self.methods.iter().find(|offer| offer.method == method)?;
        let all_exchanged = types.into_iter().all(|it| it != RefundType::Refund);
        Some(if self.free_exchange_shipping && all_exchanged {
            0
        } else {
            offer.shipping_cost_cents
        })
    }
}
