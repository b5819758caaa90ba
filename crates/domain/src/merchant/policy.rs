//! What a merchant's shoppers can choose when they return something.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::returns::{GiftCardOffer, ReturnMethod};

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
