//! The terms of a quote, and their changes. A quote token contains the terms that the shopper saw.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::returns::{IneligibleCode, MAX_UNITS, RefundType, UnitId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// A difference between a quote and the current terms.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct QuoteChange {
    /// The unit; absent if the whole return differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<UnitId>,
    #[schema(example = "return_shipping_cost_cents")]
    field: &'static str,
    /// The quoted value; null if there was none.
    quoted: Value,
    current: Value,
}

/// Terms in a quote token. The token is only compared with the current terms and never trusted, so
/// it needs no signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QuoteTerms {
    pub(crate) return_shipping_cost_cents: i64,
    /// The bonus of the merchant's settings for all gift cards. `None` in tokens of earlier versions, which have no
    /// bonuses.
    #[serde(default)]
    pub(crate) gift_card_bonus_amount_cents: Option<i64>,
    pub(crate) units: Vec<UnitTerms>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnitTerms {
    #[serde(flatten)]
    pub(crate) id: UnitId,
    pub(crate) refund_type: RefundType,
    pub(crate) refund_amount_cents: i64,
    /// The bonus that a rule gives.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) bonus_amount_cents: i64,
    pub(crate) ineligible: Option<IneligibleCode>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(cents: &i64) -> bool {
    *cents == 0
}

impl QuoteTerms {
    /// Parses a quote token. No return has more than [`MAX_UNITS`].
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let terms: Option<Self> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        terms.filter(|terms| terms.units.len() <= MAX_UNITS).ok_or("is not a valid quote")
    }

    /// The quote token with these terms.
    pub(crate) fn to_token(&self) -> String {
        URL_SAFE_NO_PAD.encode(json!(self).to_string())
    }

    /// Differences from the current terms.
    pub(crate) fn changes(&self, current: &Self) -> Vec<QuoteChange> {
        let mut changes = Vec::new();
        let mut compare = |unit: Option<&UnitId>, field, [quoted, current]: [Value; 2]| {
            if quoted != current {
                changes.push(QuoteChange { unit: unit.cloned(), field, quoted, current });
            }
        };
        let costs = [self, current].map(|it| json!(it.return_shipping_cost_cents));
        compare(None, "return_shipping_cost_cents", costs);
        let has_bonuses = self.gift_card_bonus_amount_cents.is_some();
        if has_bonuses {
            let bonuses = [self, current].map(|it| json!(it.gift_card_bonus_amount_cents));
            compare(None, "gift_card_bonus_amount_cents", bonuses);
        }
        let units = [self, current].map(Self::units_by_id);
        let ids: BTreeSet<_> = units.iter().flat_map(BTreeMap::keys).copied().collect();
        for id in ids {
            let terms = units.each_ref().map(|units| units.get(id).copied());
            let values =
                |of: fn(&UnitTerms) -> Value| terms.map(|terms| terms.map_or(Value::Null, of));
            compare(Some(id), "refund_amount_cents", values(|it| json!(it.refund_amount_cents)));
            if has_bonuses {
                compare(Some(id), "bonus_amount_cents", values(|it| json!(it.bonus_amount_cents)));
            }
            compare(Some(id), "refund_type", values(|it| json!(it.refund_type)));
            compare(Some(id), "ineligible", values(|it| json!(it.ineligible)));
        }
        changes
    }

    fn units_by_id(&self) -> BTreeMap<&UnitId, &UnitTerms> {
        self.units.iter().map(|unit| (&unit.id, unit)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(units: usize) -> QuoteTerms {
        let unit = |unit| UnitTerms {
            id: UnitId {
                order_identifier: "1001".to_owned(),
                order_line_item_identifier: "L1".to_owned(),
                unit,
            },
            refund_type: RefundType::Refund,
            refund_amount_cents: 100,
            bonus_amount_cents: 0,
            ineligible: None,
        };
        let units = (1..).take(units).map(unit).collect();
        let gift_card_bonus_amount_cents = Some(0);
        QuoteTerms { return_shipping_cost_cents: 0, gift_card_bonus_amount_cents, units }
    }

    #[test]
    fn a_quote_has_at_most_the_units_of_a_return() {
        let largest = terms(MAX_UNITS);
        assert_eq!(QuoteTerms::parse(&largest.to_token()), Ok(largest));
        let too_large = terms(MAX_UNITS + 1).to_token();
        assert_eq!(QuoteTerms::parse(&too_large), Err("is not a valid quote"));
    }

    #[test]
    fn units_that_are_only_in_one_of_the_terms_are_changes() {
        let (quoted, current) = (terms(1), terms(2));
        assert_eq!(quoted.changes(&quoted), []);
        let changes = quoted.changes(&current);
        assert_eq!(
            changes,
            current
                .changes(&quoted)
                .into_iter()
                .map(|change| {
                    let QuoteChange { unit, field, quoted, current } = change;
                    QuoteChange { unit, field, quoted: current, current: quoted }
                })
                .collect::<Vec<_>>()
        );
        let units: BTreeSet<_> = changes.iter().filter_map(|change| change.unit.as_ref()).collect();
        assert_eq!(units.into_iter().map(|id| id.unit).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn bonuses_are_terms() {
        let quoted = terms(2);
        let mut current = terms(2);
        current.gift_card_bonus_amount_cents = Some(500);
        current.units[1].bonus_amount_cents = 30;
        assert_eq!(QuoteTerms::parse(&current.to_token()), Ok(current.clone()));
        let shown = |changes: Vec<QuoteChange>| -> Vec<String> {
            let line = |it: QuoteChange| format!("{} {} {}", it.field, it.quoted, it.current);
            changes.into_iter().map(line).collect()
        };
        let expected = ["gift_card_bonus_amount_cents 0 500", "bonus_amount_cents 0 30"];
        assert_eq!(shown(quoted.changes(&current)), expected);
        // A token of an earlier version.
        let earlier = QuoteTerms { gift_card_bonus_amount_cents: None, ..quoted };
        assert_eq!(earlier.changes(&current), []);
    }
}
