//! The return options of a merchant's shoppers.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use super::patch::replace;
use super::return_method::ReturnMethod;
use crate::json::{
    Field, Object, array, boolean, integer, object, printable_text, read_fields, text, variant,
};

/// The range of a shipping cost or a bonus: up to a million of the major currency unit.
const COST: RangeInclusive<i64> = 0..=100_000_000;

/// The range of a deadline in days, and its default.
const DAYS: RangeInclusive<i64> = 1..=3650;
const DEFAULT_DAYS: u16 = 30;

/// The code of the built-in reason of a withdrawal from the contract (Directive (EU) 2023/2673).
pub const WITHDRAWAL: &str = "withdrawal";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnPolicy {
    /// The reasons for a return, in the order in which shoppers see them.
    // Shared, because most merchants have the default reasons.
    #[serde(serialize_with = "serialize_reasons", deserialize_with = "deserialize_shared_reasons")]
    #[schema(value_type = Vec<ReturnReason>, min_items = 1, max_items = 100)]
    pub reasons: Arc<[ReturnReason]>,
    /// The return methods and their costs.
    #[schema(min_items = 1, max_items = 3)]
    pub methods: Vec<MethodOffer>,
    /// Whether shipping is free for a return in which every unit is exchanged.
    pub free_exchange_shipping: bool,
    /// The gift card that shoppers can choose instead of a refund.
    pub gift_card: Option<GiftCardOffer>,
    /// Days after the request within which the shopper hands over the parcel. A return that no carrier has scanned by
    /// then expires.
    #[serde(default = "default_days")]
    #[schema(minimum = 1, maximum = 3650, default = 30)]
    pub send_within_days: u16,
    /// Days after an exchange order was accepted within which the exchanged units come back. A unit that no carrier has
    /// scanned by then is due: the merchant can charge for it.
    #[serde(default = "default_days")]
    #[schema(minimum = 1, maximum = 3650, default = 30)]
    pub exchange_deadline_days: u16,
}

fn default_days() -> u16 {
    DEFAULT_DAYS
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnReason {
    /// The value of `return_reason` in messages to the merchant.
    #[schema(min_length = 1, max_length = 100, example = "TOO_SMALL")]
    pub code: String,
    #[schema(min_length = 1, max_length = 200, example = "Too small")]
    pub label: String,
    /// Whether shoppers who give this reason can exchange the unit for another variant.
    #[schema(required = false, default = false)]
    pub offers_exchange: bool,
}

impl ReturnReason {
    fn new(code: &str, label: &str, offers_exchange: bool) -> Self {
        Self { code: code.to_owned(), label: label.to_owned(), offers_exchange }
    }
}

static DEFAULT_REASONS: LazyLock<Arc<[ReturnReason]>> = LazyLock::new(|| {
    Arc::new([
        ReturnReason::new("TOO_SMALL", "Too small", true),
        ReturnReason::new("TOO_LARGE", "Too large", true),
        ReturnReason::new("WRONG_ITEM", "Not what I ordered", true),
        ReturnReason::new("DAMAGED", "Arrived damaged", true),
        ReturnReason::new("CHANGED_MIND", "I changed my mind", false),
        ReturnReason::new("OTHER", "Another reason", false),
    ])
});

/// Serializes the reasons behind the `Arc`, which serde does not do itself without its feature `rc`.
fn serialize_reasons<S: Serializer>(reasons: &[ReturnReason], to: S) -> Result<S::Ok, S::Error> {
    reasons.serialize(to)
}

/// Merchants with the default reasons share one list, because each service keeps the settings of all merchants in
/// memory.
fn deserialize_shared_reasons<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Arc<[ReturnReason]>, D::Error> {
    let reasons = Vec::deserialize(from)?;
    let is_default = reasons == **DEFAULT_REASONS;
    Ok(if is_default { DEFAULT_REASONS.clone() } else { reasons.into() })
}

/// A return method and its cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MethodOffer {
    pub method: ReturnMethod,
    /// The cost of the whole return for the shopper.
    #[schema(required = false, default = 0, minimum = 0, maximum = 100_000_000)]
    pub shipping_cost_cents: i64,
}

/// The gift card that a merchant offers instead of a refund.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GiftCardOffer {
    /// The SKU agreed with the merchant for gift cards.
    #[schema(min_length = 1, max_length = 255)]
    pub sku: String,
    /// The bonus for choosing the card, once per exchange order.
    #[schema(required = false, default = 0, minimum = 0, maximum = 100_000_000)]
    pub bonus_credit_amount_cents: i64,
}

impl Default for ReturnPolicy {
    /// Common reasons, and free returns by mail.
    fn default() -> Self {
        let free = |method| MethodOffer { method, shipping_cost_cents: 0 };
        Self {
            reasons: DEFAULT_REASONS.clone(),
            methods: vec![free(ReturnMethod::MailBack), free(ReturnMethod::ExpressReturns)],
            free_exchange_shipping: true,
            gift_card: None,
            send_within_days: DEFAULT_DAYS,
            exchange_deadline_days: DEFAULT_DAYS,
        }
    }
}

impl ReturnPolicy {
    /// The policy with the built-in reason of a withdrawal from the contract, which offers no exchange.
    #[must_use]
    pub fn with_withdrawal(&self) -> Self {
        let own = self.reasons.iter().filter(|reason| reason.code != WITHDRAWAL).cloned();
        let withdrawal = ReturnReason::new(WITHDRAWAL, "Withdrawal from the contract", false);
        Self { reasons: own.chain([withdrawal]).collect(), ..self.clone() }
    }
}

/// Changes to the return policy. A list replaces the previous list. `gift_card` can be null.
#[derive(Debug, Clone, Default, PartialEq, Eq, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReturnPolicyChange)]
pub(super) struct PolicyChange {
    #[schema(min_items = 1, max_items = 100)]
    reasons: Option<Vec<ReturnReason>>,
    #[schema(min_items = 1, max_items = 3)]
    methods: Option<Vec<MethodOffer>>,
    free_exchange_shipping: Option<bool>,
    #[schema(value_type = Option<GiftCardOffer>)]
    gift_card: Option<Option<GiftCardOffer>>,
    #[schema(minimum = 1, maximum = 3650)]
    send_within_days: Option<u16>,
    #[schema(minimum = 1, maximum = 3650)]
    exchange_deadline_days: Option<u16>,
}

impl PolicyChange {
    pub(super) fn read(document: &Object<'_>) -> Option<Self> {
        let mut codes = BTreeSet::new();
        let mut methods = BTreeSet::new();
        let reason = object(|reason| read_reason(reason, &mut codes));
        let method = object(|method| read_method(method, &mut methods));
        read_fields!(document => Self {
            reasons: document.optional("reasons", array(1..=100, reason)),
            methods: document.optional("methods", array(1..=3, method)),
            free_exchange_shipping: document.optional("free_exchange_shipping", boolean),
            gift_card: document.clearable("gift_card", object(read_gift_card)),
            send_within_days: document.optional("send_within_days", days),
            exchange_deadline_days: document.optional("exchange_deadline_days", days),
        })
    }

    pub(super) fn apply(self, policy: &mut ReturnPolicy) {
        replace(&mut policy.reasons, self.reasons.map(Arc::from));
        replace(&mut policy.methods, self.methods);
        replace(&mut policy.free_exchange_shipping, self.free_exchange_shipping);
        replace(&mut policy.gift_card, self.gift_card);
        replace(&mut policy.send_within_days, self.send_within_days);
        replace(&mut policy.exchange_deadline_days, self.exchange_deadline_days);
    }
}

/// Reads a deadline in days.
fn days(field: Field<'_>) -> Option<u16> {
    integer(DAYS)(field)?.try_into().ok()
}

/// Reads a reason. `codes` holds the codes of earlier reasons.
fn read_reason(reason: &Object<'_>, codes: &mut BTreeSet<String>) -> Option<ReturnReason> {
    let code = reason.required("code", text(1..=100));
    if code.as_ref().is_some_and(|code| !codes.insert(code.clone())) {
        reason.invalid("code", "another reason has the same code");
    }
    read_fields!(reason => ReturnReason {
        code: code,
        label: reason.required("label", printable_text(1..=200)),
        offers_exchange: reason.flag("offers_exchange"),
    })
}

/// Reads a method. `seen` holds the earlier methods.
fn read_method(offer: &Object<'_>, seen: &mut BTreeSet<ReturnMethod>) -> Option<MethodOffer> {
    let method = offer.required("method", variant);
    let cost = offer.optional("shipping_cost_cents", integer(COST));
    if method.is_some_and(|method| !seen.insert(method)) {
        offer.invalid("method", "is listed twice");
    }
    read_fields!(offer => MethodOffer {
        method: method,
        shipping_cost_cents: cost.map(Option::unwrap_or_default),
    })
}

fn read_gift_card(card: &Object<'_>) -> Option<GiftCardOffer> {
    let bonus = card.optional("bonus_credit_amount_cents", integer(COST));
    read_fields!(card => GiftCardOffer {
        sku: card.required("sku", text(1..=255)),
        bonus_credit_amount_cents: bonus.map(Option::unwrap_or_default),
    })
}
