//! What a merchant's shoppers can choose when they return something.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::{Object, array, boolean, integer, object, one_of, text};
use crate::returns::{GiftCardOffer, ReturnMethod};

/// A million of the major unit: more than a label or a bonus ever costs.
const COST: RangeInclusive<i64> = 0..=100_000_000;

/// What shoppers are offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnPolicy {
    /// Why something may come back, in the order in which shoppers see it.
    #[schema(min_items = 1, max_items = 100)]
    pub reasons: Vec<ReturnReason>,
    /// How something may come back, and what that costs the shopper.
    #[schema(min_items = 1, max_items = 3)]
    pub methods: Vec<MethodOffer>,
    /// Whether a return in which every unit is exchanged ships for nothing.
    pub free_exchange_shipping: bool,
    /// The gift card that can be chosen instead of a refund, if there is one.
    pub gift_card: Option<GiftCardOffer>,
}

/// A reason that shoppers can give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnReason {
    /// What the merchant reads as `return_reason`.
    #[schema(min_length = 1, max_length = 100, example = "TOO_SMALL")]
    pub code: String,
    #[schema(min_length = 1, max_length = 200, example = "Too small")]
    pub label: String,
    /// Whether other variants of the product are offered to a shopper who gives this reason.
    pub offers_exchange: bool,
}

/// A way to send something back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MethodOffer {
    pub method: ReturnMethod,
    /// What the shopper pays for the return, however many units it has.
    #[schema(minimum = 0)]
    pub shipping_cost_cents: i64,
}

impl Default for ReturnPolicy {
    /// What a merchant begins with: the usual reasons, by mail, for nothing.
    fn default() -> Self {
        let reason = |code: &str, label: &str, offers_exchange| ReturnReason {
            code: code.to_owned(),
            label: label.to_owned(),
            offers_exchange,
        };
        let free = |method| MethodOffer { method, shipping_cost_cents: 0 };
        Self {
            reasons: vec![
                reason("TOO_SMALL", "Too small", true),
                reason("TOO_LARGE", "Too large", true),
                reason("WRONG_ITEM", "Not what I ordered", true),
                reason("DAMAGED", "Arrived damaged", true),
                reason("CHANGED_MIND", "I changed my mind", false),
                reason("OTHER", "Another reason", false),
            ],
            methods: vec![free(ReturnMethod::MailBack), free(ReturnMethod::ExpressReturns)],
            free_exchange_shipping: true,
            gift_card: None,
        }
    }
}

/// What to change of what shoppers are offered; what is absent stays. Lists are replaced whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PolicyChange {
    reasons: Option<Vec<ReturnReason>>,
    methods: Option<Vec<MethodOffer>>,
    free_exchange_shipping: Option<bool>,
    gift_card: Option<Option<GiftCardOffer>>,
}

impl PolicyChange {
    pub(super) fn read(document: &Object<'_>) -> Option<Self> {
        document.reject_unknown(&["reasons", "methods", "free_exchange_shipping", "gift_card"]);
        let (mut codes, mut ways) = (BTreeSet::new(), BTreeSet::new());
        let reasons =
            document.optional("reasons", array(1..=100, object(|it| reason(it, &mut codes))));
        let methods =
            document.optional("methods", array(1..=3, object(|it| method(it, &mut ways))));
        let free = document.optional("free_exchange_shipping", boolean);
        let gift_card = document.optional("gift_card", object(gift_card));
        Some(Self {
            reasons: reasons?,
            methods: methods?,
            free_exchange_shipping: free?,
            gift_card: super::changes::emptied(document, "gift_card", gift_card?),
        })
    }

    pub(super) fn apply(self, policy: &mut ReturnPolicy) {
        super::changes::set(&mut policy.reasons, self.reasons);
        super::changes::set(&mut policy.methods, self.methods);
        super::changes::set(&mut policy.free_exchange_shipping, self.free_exchange_shipping);
        super::changes::set(&mut policy.gift_card, self.gift_card);
    }
}

fn reason(document: &Object<'_>, codes: &mut BTreeSet<String>) -> Option<ReturnReason> {
    document.reject_unknown(&["code", "label", "offers_exchange"]);
    let code = document.required("code", text(1..=100));
    let label = document.required("label", text(1..=200));
    let offers_exchange = document.optional("offers_exchange", boolean);
    if code.as_ref().is_some_and(|code| !codes.insert(code.clone())) {
        document.invalid("code", "another reason has the same code");
    }
    Some(ReturnReason {
        code: code?,
        label: label?,
        offers_exchange: offers_exchange?.unwrap_or(false),
    })
}

fn method(document: &Object<'_>, ways: &mut BTreeSet<ReturnMethod>) -> Option<MethodOffer> {
    document.reject_unknown(&["method", "shipping_cost_cents"]);
    let words: Vec<_> = ReturnMethod::ALL.iter().map(|method| (method.as_str(), *method)).collect();
    let method = document.required("method", one_of(&words));
    let cost = document.optional("shipping_cost_cents", integer(COST));
    if method.is_some_and(|method| !ways.insert(method)) {
        document.invalid("method", "is listed twice");
    }
    Some(MethodOffer { method: method?, shipping_cost_cents: cost?.unwrap_or(0) })
}

fn gift_card(document: &Object<'_>) -> Option<GiftCardOffer> {
    document.reject_unknown(&["sku", "bonus_credit_amount_cents"]);
    let sku = document.required("sku", text(1..=255));
    let bonus = document.optional("bonus_credit_amount_cents", integer(COST));
    Some(GiftCardOffer { sku: sku?, bonus_credit_amount_cents: bonus?.unwrap_or(0) })
}
