//! A shopper's request for a return.
//!
//! [`ReturnRequest::read`] validates a body against the merchant's policy, and
//! [`ReturnRequest::exchange_errors`] validates it against the orders. Both report every failing
//! field at once.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::email::email;
use super::{Resolution, ReturnMethod, StaffOverride, UnitId, Variant, Withdrawal};
use crate::json::{
    Document, FieldError, Object, ValidationError, array, integer, object, one_of, parsed,
    read_fields, text, variant,
};
use crate::merchant::{Language, ReturnPolicy, ReturnReason, WITHDRAWAL};
use crate::printable::is_printable;

/// The largest number of units in a return.
pub const MAX_UNITS: usize = 1_000;
/// The longest comment of a shopper about a unit.
pub const MAX_COMMENT_CHARS: usize = 1_000;
/// The largest number of orders in a return. Each order is loaded whole and can have ten thousand
/// units.
const MAX_ORDERS: usize = 24;

/// A request for a return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnRequest {
    pub return_method: ReturnMethod,
    /// Units of at most 24 orders.
    #[schema(min_items = 1, max_items = 1000)]
    pub units: Vec<RequestedUnit>,
    /// Whether the shopper is the giftee and not the buyer: refunds go to a gift card. Requires
    /// `giftee_email`.
    #[serde(default)]
    #[schema(required = false)]
    pub gift_refund_only: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 3, max_length = 255)]
    pub giftee_email: Option<String>,
    /// The person who withdraws from the contract. Requires the reason `withdrawal` for every unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawal: Option<Withdrawal>,
    /// The language of mails to the shopper, if the merchant's portal offers it. Default: that of the portal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub language: Option<Language>,
    /// Allows units to be returned against the merchant's policy.
    #[serde(default, rename = "override", skip_serializing_if = "Option::is_none")]
    pub staff_override: Option<StaffOverride>,
}

/// One unit of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestedUnit {
    #[serde(flatten)]
    pub id: UnitId,
    /// The code of one of the merchant's reasons.
    #[schema(min_length = 1, max_length = 100)]
    pub return_reason: String,
    /// The words of the shopper for the merchant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 1000)]
    pub comment: Option<String>,
    #[serde(flatten)]
    pub resolution: Resolution,
}

impl ReturnRequest {
    pub const FIELDS: [&str; 7] = [
        "return_method",
        "units",
        "gift_refund_only",
        "giftee_email",
        "withdrawal",
        "language",
        "override",
    ];

    /// Reads a body and validates it against the merchant's policy.
    pub fn read(document: &Document, policy: &ReturnPolicy) -> Result<Self, ValidationError> {
        document.read(object(|body| {
            body.reject_unknown(&Self::FIELDS);
            Self::read_object(body, policy)
        }))
    }

    /// Like [`ReturnRequest::read`], for an object with further fields. The caller rejects unknown
    /// fields.
    pub fn read_object(body: &Object<'_>, policy: &ReturnPolicy) -> Option<Self> {
        let methods = policy.methods.iter().map(|it| (it.method.as_str(), it.method));
        let method = body.required("return_method", one_of(&methods.collect::<Vec<_>>()));
        let mut seen = HashSet::new();
        let unit = object(|unit| RequestedUnit::read(unit, policy, &mut seen));
        let units = body.required("units", array(1..=MAX_UNITS, unit));
        let orders: HashSet<_> = seen.iter().map(|id| &id.order_identifier).collect();
        if orders.len() > MAX_ORDERS {
            body.invalid("units", format!("must be of at most {MAX_ORDERS} orders"));
        }
        let gift = body.flag("gift_refund_only");
        let giftee_email = body.optional("giftee_email", parsed(3..=255, email));
        let withdrawal = read_withdrawal(body, units.as_deref());
        let language = body.optional("language", variant);
        let staff_override = body.optional("override", object(StaffOverride::read));

        match (gift, body.has("giftee_email")) {
            (Some(true), false) => {
                body.missing("giftee_email");
                return None;
            }
            (Some(false), true) => {
                body.invalid("giftee_email", "comes only with gift_refund_only");
            }
            _ => {}
        }
        Some(Self {
            return_method: method?,
            units: units?,
            gift_refund_only: gift?,
            giftee_email: giftee_email?,
            withdrawal: withdrawal?,
            language: language?,
            staff_override: staff_override?,
        })
    }

    /// Errors for units that cannot be exchanged because their line has no variants.
    /// `has_variants` returns `None` for an unknown unit, which the caller reports.
    pub fn exchange_errors(
        &self,
        has_variants: impl Fn(&UnitId) -> Option<bool>,
    ) -> Vec<FieldError> {
        let is_exchange =
            |unit: &RequestedUnit| matches!(unit.resolution, Resolution::Exchange { .. });
        let error = |(index, unit): (usize, &RequestedUnit)| {
            (is_exchange(unit) && has_variants(&unit.id) == Some(false)).then(|| {
                let field = format!("$.units[{index}].resolution");
                FieldError::invalid(field, "there are no variants of this item")
            })
        };
        self.units.iter().enumerate().filter_map(error).collect()
    }
}

impl RequestedUnit {
    fn read(unit: &Object<'_>, policy: &ReturnPolicy, seen: &mut HashSet<UnitId>) -> Option<Self> {
        let own = ["return_reason", "comment", "resolution", "variant"];
        unit.reject_unknown(&[&UnitId::FIELDS[..], &own[..]].concat());
        let id = UnitId::read(unit);
        let codes: Vec<_> = policy.reasons.iter().map(|it| (it.code.as_str(), it)).collect();
        let reason = unit.required("return_reason", one_of(&codes));
        let comment = unit.optional("comment", parsed(1..=MAX_COMMENT_CHARS, comment));
        let resolution = read_resolution(unit, policy, reason);
        if id.as_ref().is_some_and(|id| !seen.insert(id.clone())) {
            unit.invalid("unit", "the same unit is listed twice");
        }
        Some(Self {
            id: id?,
            return_reason: reason?.code.clone(),
            comment: comment?,
            resolution: resolution?,
        })
    }
}

/// A comment may have several lines.
fn comment(text: &str) -> Result<String, &'static str> {
    let text = text.replace("\r\n", "\n");
    match text.chars().all(|c| c == '\n' || is_printable(c)) {
        true => Ok(text),
        false => Err("must not contain control or bidirectional characters"),
    }
}

/// `units` is `None` if the units are invalid.
fn read_withdrawal(
    body: &Object<'_>,
    units: Option<&[RequestedUnit]>,
) -> Option<Option<Withdrawal>> {
    let is_withdrawn = |unit: &RequestedUnit| unit.return_reason == WITHDRAWAL;
    if body.has("withdrawal") && units.is_some_and(|units| !units.iter().all(is_withdrawn)) {
        body.invalid("withdrawal", "comes only with the reason withdrawal");
    }
    if body.has("withdrawal") && body.has("giftee_email") {
        body.invalid("withdrawal", "does not come with giftee_email: a giftee has no contract");
    }
    body.optional("withdrawal", object(Withdrawal::read))
}

/// `reason` is `None` if the unit's reason is invalid.
fn read_resolution(
    unit: &Object<'_>,
    policy: &ReturnPolicy,
    reason: Option<&ReturnReason>,
) -> Option<Resolution> {
    let kinds = ["refund", "exchange", "gift_card"];
    let Some(kind) = unit.required("resolution", one_of(&kinds.map(|kind| (kind, kind)))) else {
        // A unit whose resolution is not known may need a variant.
        unit.optional("variant", object(Variant::read));
        return None;
    };
    if kind != "exchange" && unit.has("variant") {
        unit.invalid("variant", "comes only with the resolution exchange");
    }
    match kind {
        "exchange" => {
            if reason.is_some_and(|reason| !reason.offers_exchange) {
                unit.invalid("resolution", "this reason offers no exchange");
            }
            let variant = unit.required("variant", object(Variant::read))?;
            Some(Resolution::Exchange { variant })
        }
        "gift_card" => {
            if policy.gift_card.is_none() {
                unit.invalid("resolution", "this merchant offers no gift card");
            }
            Some(Resolution::GiftCard)
        }
        _ => Some(Resolution::Refund),
    }
}

impl Variant {
    fn read(variant: &Object<'_>) -> Option<Self> {
        let price = integer(0..=1_000_000_000_000_000);
        read_fields!(variant => Self {
            sku: variant.required("sku", text(1..=255)),
            title: variant.required("title", text(1..=1_000)),
            unit_price_amount_cents: variant.optional("unit_price_amount_cents", price),
            product_identifier: variant.optional("product_identifier", text(1..=255)),
        })
    }
}

impl StaffOverride {
    fn read(staff: &Object<'_>) -> Option<Self> {
        read_fields!(staff => Self {
            by: staff.required("by", text(1..=255)),
            reason: staff.required("reason", text(1..=1_000)),
        })
    }
}
