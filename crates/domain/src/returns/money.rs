//! Amounts of units and refunds, exact to the cent.
//!
//! The shares of a line always sum to the line and its part of the order's discount, and the amounts
//! of a unit never change.
//!
//! See docs/decisions/unit-amounts.md.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RefundType;
use crate::order::OrderLine;

/// The amounts of a line, or a unit's share of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Amounts {
    pub product_amount_cents: i64,
    pub discount_amount_cents: i64,
    pub tax_amount_cents: i64,
}

impl Amounts {
    /// The amount that the shopper paid: product minus discount plus tax, never below zero.
    pub fn paid(self) -> i64 {
        (self.product_amount_cents - self.discount_amount_cents + self.tax_amount_cents).max(0)
    }

    /// The amounts of a line, with the discount limited to product plus tax.
    pub fn of_line(line: &OrderLine) -> Self {
        Self {
            product_amount_cents: line.product_amount_cents,
            discount_amount_cents: line.discount_amount_cents,
            tax_amount_cents: line.tax_amount_cents,
        }
        .with_limited_discount()
    }

    /// Subtracts each amount, never below zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            product_amount_cents: (self.product_amount_cents - other.product_amount_cents).max(0),
            discount_amount_cents: (self.discount_amount_cents - other.discount_amount_cents)
                .max(0),
            tax_amount_cents: (self.tax_amount_cents - other.tax_amount_cents).max(0),
        }
        .with_limited_discount()
    }

    /// Splits the amounts into `units` shares. Each amount sums to its total, and the paid amounts
    /// are the largest-remainder split of the paid total. To achieve this, the odd cents of the
    /// tax start after those of the product, and the odd cents of the discount end where those of
    /// the tax end.
    pub fn split(self, units: usize) -> Vec<Self> {
        let Ok(count) = i64::try_from(units) else { return Vec::new() };
        if count == 0 {
            return Vec::new();
        }
        let (product, odd_product) = divide(self.product_amount_cents, count);
        let (tax, odd_tax) = divide(self.tax_amount_cents, count);
        let (discount, odd_discount) = divide(self.discount_amount_cents, count);
        let end = (odd_product + odd_tax) % count;
        // 1 if the position is in the run of `length` positions from `start`, modulo `count`.
        let odd_cent = |position: i64, start: i64, length: i64| {
            i64::from((position - start).rem_euclid(count) < length)
        };
        let share = |position| Self {
            product_amount_cents: product + odd_cent(position, 0, odd_product),
            tax_amount_cents: tax + odd_cent(position, odd_product, odd_tax),
            discount_amount_cents: discount + odd_cent(position, end - odd_discount, odd_discount),
        };
        (0..count).map(share).collect()
    }

    fn with_limited_discount(self) -> Self {
        let limit = self.product_amount_cents + self.tax_amount_cents;
        Self { discount_amount_cents: self.discount_amount_cents.min(limit), ..self }
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

/// Splits a total in proportion to the weights by largest remainder; of equal remainders, the first
/// gets the cent. The total is at most the sum of the weights, so no part exceeds its weight.
pub(super) fn apportion(total: i64, weights: &[i64]) -> Vec<i64> {
    let sum: i128 = weights.iter().copied().map(i128::from).sum();
    let part = |weight: &i64| {
        let product = i128::from(*weight) * i128::from(total);
        let quotient = product.checked_div(sum).unwrap_or_default();
        (i64::try_from(quotient).unwrap_or_default(), product.checked_rem(sum).unwrap_or_default())
    };
    let mut parts: Vec<_> = weights.iter().map(part).collect();
    let left = total - parts.iter().map(|(share, _)| share).sum::<i64>();
    let mut by_remainder: Vec<_> = parts.iter_mut().collect();
    by_remainder.sort_by_key(|(_, remainder)| std::cmp::Reverse(*remainder));
    for (share, _) in by_remainder.into_iter().take(usize::try_from(left).unwrap_or_default()) {
        *share += 1;
    }
    parts.into_iter().map(|(share, _)| share).collect()
}

/// Quotient and remainder.
fn divide(total: i64, count: i64) -> (i64, i64) {
    (total.div_euclid(count), total.rem_euclid(count))
}

/// The refund of a unit. The estimate is the sum of the other two amounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefundFinancials {
    /// The amount that can be refunded for the unit.
    #[schema(minimum = 0)]
    pub estimated_refund_amount_cents: i64,
    /// The amount that the service receives because the shopper got an exchange.
    #[schema(minimum = 0)]
    pub service_refund_amount_cents: i64,
    /// The amount that the shopper receives.
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
