//! The quote of rma-engine. Amounts are absent for a giftee.

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Quote {
    /// The token that stands for these terms.
    pub(crate) quote: String,
    #[serde(default)]
    pub(crate) possible: bool,
    #[serde(default)]
    pub(crate) return_method: String,
    pub(crate) return_shipping_cost_cents: Option<i64>,
    pub(crate) shopper_refund_amount_cents: Option<i64>,
    #[serde(default)]
    pub(crate) currency: String,
    #[serde(default)]
    pub(crate) units: Vec<QuotedUnit>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct QuotedUnit {
    pub(crate) order_identifier: String,
    pub(crate) order_line_item_identifier: String,
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) refund_financials: Financials,
    pub(crate) ineligible: Option<Ineligible>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Financials {
    pub(crate) estimated_refund_amount_cents: Option<i64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Ineligible {
    pub(crate) code: String,
}

impl Quote {
    /// The units of a line.
    pub(crate) fn line<'a>(
        &'a self,
        order: &'a str,
        line: &'a str,
    ) -> impl Iterator<Item = &'a QuotedUnit> {
        self.units.iter().filter(move |unit| {
            unit.order_identifier == order && unit.order_line_item_identifier == line
        })
    }
}
