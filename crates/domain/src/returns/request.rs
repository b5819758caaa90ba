//! What a shopper asks for, read from the body of a request.
//!
//! [`ReturnRequest::read`] holds a body against the merchant's policy; [`ReturnRequest::faults`]
//! then holds it against the orders it speaks of. Both name every failing field at once.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Resolution, ReturnMethod, StaffOverride, UnitId, Variant};
use crate::json::{
    Document, FieldError, Object, ValidationError, array, boolean, integer, object, one_of, parsed,
    text,
};
use crate::merchant::{ReturnPolicy, ReturnReason};

/// A return has at most this many units.
pub const MAX_UNITS: usize = 1_000;
/// Of at most this many orders: each is read whole, and may have ten thousand units of its own.
const MAX_ORDERS: usize = 24;

/// A return that a shopper asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnRequest {
    pub return_method: ReturnMethod,
    /// Of at most 24 orders.
    #[schema(min_items = 1, max_items = 1000)]
    pub units: Vec<RequestedUnit>,
    /// Whether the shopper is the giftee and not the buyer: refunds go to a gift card. Comes with
    /// `giftee_email` or not at all.
    #[serde(default)]
    #[schema(required = false)]
    pub gift_refund_only: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 3, max_length = 255)]
    pub giftee_email: Option<String>,
    /// Lets units pass against the merchant's terms.
    #[serde(default, rename = "override", skip_serializing_if = "Option::is_none")]
    pub staff_override: Option<StaffOverride>,
}

/// One unit of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestedUnit {
    #[serde(flatten)]
    pub id: UnitId,
    /// One of the merchant's codes.
    #[schema(min_length = 1, max_length = 100)]
    pub return_reason: String,
    #[serde(flatten)]
    pub resolution: Resolution,
}

impl ReturnRequest {
    /// What a request may say.
    pub const FIELDS: [&str; 5] =
        ["return_method", "units", "gift_refund_only", "giftee_email", "override"];

    /// Reads a body and checks it against what the merchant offers.
    pub fn read(document: &Document, policy: &ReturnPolicy) -> Result<Self, ValidationError> {
        document.read(object(|body| {
            body.reject_unknown(&Self::FIELDS);
            Self::read_object(body, policy)
        }))
    }

    /// The same for an object that says more: whoever reads that refuses what is unknown.
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
        let gift = body.optional("gift_refund_only", boolean);
        let giftee_email = body.optional("giftee_email", parsed(3..=255, email));
        let staff_override = body.optional("override", object(StaffOverride::read));

        let gift = gift.map(Option::unwrap_or_default);
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
            staff_override: staff_override?,
        })
    }

    /// What is wrong with the request in the light of its orders. `has_variants` says whether the
    /// unit's line has a `variant_identifier`; a unit it does not know is judged elsewhere.
    pub fn exchange_errors(
        &self,
        has_variants: impl Fn(&UnitId) -> Option<bool>,
    ) -> Vec<FieldError> {
        let units = self.units.iter().enumerate();
        let exchanged =
            units.filter(|(_, unit)| matches!(unit.resolution, Resolution::Exchange { .. }));
        let faulty = exchanged.filter(|(_, unit)| has_variants(&unit.id) == Some(false));
        let fault = |(index, _)| {
            let detail = "there are no variants of this item";
            FieldError::invalid(format!("$.units[{index}].resolution"), detail)
        };
        faulty.map(fault).collect()
    }
}

impl RequestedUnit {
    fn read(unit: &Object<'_>, policy: &ReturnPolicy, seen: &mut HashSet<UnitId>) -> Option<Self> {
        let own = ["return_reason", "resolution", "variant"];
        unit.reject_unknown(&[&UnitId::FIELDS[..], &own[..]].concat());
        let id = UnitId::read(unit);
        let codes: Vec<_> = policy.reasons.iter().map(|it| (it.code.as_str(), it)).collect();
        let reason = unit.required("return_reason", one_of(&codes));
        let resolution = read_resolution(unit, policy, reason);
        if id.as_ref().is_some_and(|id| !seen.insert(id.clone())) {
            unit.invalid("unit", "the same unit is listed twice");
        }
        Some(Self { id: id?, return_reason: reason?.code.clone(), resolution: resolution? })
    }
}

/// `reason` is the one given, when it could be read.
fn read_resolution(
    unit: &Object<'_>,
    policy: &ReturnPolicy,
    reason: Option<&ReturnReason>,
) -> Option<Resolution> {
    #[derive(Clone, Copy)]
    enum Word {
        Refund,
        Exchange,
        GiftCard,
    }
    let words =
        [("refund", Word::Refund), ("exchange", Word::Exchange), ("gift_card", Word::GiftCard)];
    let word = unit.required("resolution", one_of(&words))?;
    if !matches!(word, Word::Exchange) && unit.has("variant") {
        unit.invalid("variant", "comes only with the resolution exchange");
    }
    match word {
        Word::Refund => Some(Resolution::Refund),
        Word::Exchange => {
            if reason.is_some_and(|reason| !reason.offers_exchange) {
                unit.invalid("resolution", "this reason offers no exchange");
            }
            let variant = unit.required("variant", object(Variant::read))?;
            Some(Resolution::Exchange { variant })
        }
        Word::GiftCard => {
            if policy.gift_card.is_none() {
                unit.invalid("resolution", "this merchant offers no gift card");
            }
            Some(Resolution::GiftCard)
        }
    }
}

impl UnitId {
    pub(super) const FIELDS: [&str; 3] = ["order_identifier", "order_line_item_identifier", "unit"];

    /// Reads the three fields that name a unit.
    pub fn read(unit: &Object<'_>) -> Option<Self> {
        let order = unit.required("order_identifier", text(1..=255));
        let line = unit.required("order_line_item_identifier", text(1..=255));
        let number = unit.required("unit", integer(1..=1_000));
        Some(Self {
            order_identifier: order?,
            order_line_item_identifier: line?,
            unit: i32::try_from(number?).ok()?,
        })
    }
}

impl Variant {
    fn read(variant: &Object<'_>) -> Option<Self> {
        variant.reject_unknown(&["sku", "title", "unit_price_amount_cents", "product_identifier"]);
        let sku = variant.required("sku", text(1..=255));
        let title = variant.required("title", text(1..=1_000));
        let unit_price =
            variant.optional("unit_price_amount_cents", integer(0..=1_000_000_000_000_000));
        let product_identifier = variant.optional("product_identifier", text(1..=255));
        Some(Self {
            sku: sku?,
            title: title?,
            unit_price_amount_cents: unit_price?,
            product_identifier: product_identifier?,
        })
    }
}

impl StaffOverride {
    fn read(staff: &Object<'_>) -> Option<Self> {
        staff.reject_unknown(&["by", "reason"]);
        let by = staff.required("by", text(1..=255));
        let reason = staff.required("reason", text(1..=1_000));
        Some(Self { by: by?, reason: reason? })
    }
}

/// Messages go there, so it must at least look like an address.
fn email(text: &str) -> Result<String, &'static str> {
    let is_plain = !text.chars().any(|c| c.is_whitespace() || c.is_control());
    match text.rsplit_once('@') {
        Some((name, host)) if is_plain && !name.is_empty() && !host.is_empty() => {
            Ok(text.to_owned())
        }
        _ => Err("must be an e-mail address"),
    }
}
