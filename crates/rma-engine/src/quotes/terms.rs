//! The terms of a quote, and their changes. A quote token contains the terms that the shopper saw.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::returns::{IneligibleCode, RefundType, UnitId};
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
    pub(crate) units: Vec<UnitTerms>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnitTerms {
    #[serde(flatten)]
    pub(crate) id: UnitId,
    pub(crate) refund_type: RefundType,
    pub(crate) refund_amount_cents: i64,
    pub(crate) ineligible: Option<IneligibleCode>,
}

impl QuoteTerms {
    /// Parses a quote token.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let terms = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        terms.ok_or("is not a valid quote")
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
        let ids: BTreeSet<_> = self.units.iter().chain(&current.units).map(|it| &it.id).collect();
        for id in ids {
            let terms = [self, current].map(|it| it.units.iter().find(|it| it.id == *id));
            let values =
                |of: fn(&UnitTerms) -> Value| terms.map(|terms| terms.map_or(Value::Null, of));
            compare(Some(id), "refund_amount_cents", values(|it| json!(it.refund_amount_cents)));
            compare(Some(id), "refund_type", values(|it| json!(it.refund_type)));
            compare(Some(id), "ineligible", values(|it| json!(it.ineligible)));
        }
        changes
    }
}
