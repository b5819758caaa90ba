//! The quote of rma-engine. Amounts are absent for a giftee.

use serde::Deserialize;

use crate::refusal::Refusal;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Quote {
    /// The token that stands for these terms.
    pub(crate) quote: String,
    #[serde(default)]
    pub(crate) possible: bool,
    #[serde(default)]
    pub(crate) return_method: String,
    pub(crate) return_shipping_cost_cents: Option<i64>,
    /// The rule that caused the cost.
    pub(crate) cost_rule: Option<String>,
    /// The rule that lets the shop look at the return before it starts.
    pub(crate) review_rule: Option<String>,
    /// The bonus of the settings for all gift cards.
    pub(crate) gift_card_bonus_amount_cents: Option<i64>,
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
    pub(crate) resolution: String,
    #[serde(default)]
    pub(crate) refund_financials: Financials,
    /// The bonus that a rule of the merchant gives.
    pub(crate) bonus_amount_cents: Option<i64>,
    pub(crate) ineligible: Option<Refusal>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Financials {
    pub(crate) estimated_refund_amount_cents: Option<i64>,
}

impl Quote {
    /// The bonus of all gift cards: by rules for each unit, and by the settings.
    pub(crate) fn card_bonus(&self) -> i64 {
        let cards = self.units.iter().filter(|unit| unit.is_for_card());
        let by_rules: i64 = cards.filter_map(|unit| unit.bonus_amount_cents).sum();
        by_rules + self.gift_card_bonus_amount_cents.unwrap_or_default()
    }

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

impl QuotedUnit {
    pub(crate) fn is_for_card(&self) -> bool {
        self.resolution == "gift_card"
    }
}
