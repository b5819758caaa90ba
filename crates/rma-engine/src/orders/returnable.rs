//! The units of an order that can be returned, and the choices that a shopper has.

use std::iter::Peekable;
use std::sync::Arc;
use std::{mem, vec};

use chrono::{DateTime, Utc};
use domain::merchant::{Merchant, ReturnPolicy};
use domain::policy::{
    LinePolicies, Offers, PolicyAt, PreparedPolicy, ReasonChoices, UnavailableMethod,
};
use domain::returns::{Amounts, Ineligible, UnitId};
use platform::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Error;
use crate::orders::units::{LoadedUnit, OrderUnits, UnitRef};

/// Minimum bytes of a body chunk, except the last.
const MIN_CHUNK_BYTES: usize = 32 * 1024;
/// Units of a page after which it ends. With one more unit and the policy it stays below 2 MiB.
const MAX_PAGE_BYTES: usize = 1024 * 1024;
/// Start of the list of units in the JSON text.
const UNITS: &str = r#""units":["#;

/// The units of an order and the choices of the shopper.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReturnableOrder {
    order_identifier: String,
    /// `updated_at` of the order snapshot.
    order_updated_at: DateTime<Utc>,
    #[schema(example = "USD")]
    currency: String,
    /// The original order of an exchange order.
    #[serde(skip_serializing_if = "Option::is_none")]
    original_order_identifier: Option<String>,
    /// Whether the shopper can choose an exchange or a gift card. An order can have one exchange.
    exchange_possible: bool,
    /// The amount paid for units of the order that the shopper keeps already. Present only if a rule limits it. A return of
    /// several orders can keep that much less of each other one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    kept_amount_cents: Option<i64>,
    units: Vec<ReturnableUnit>,
    /// Value of `after` for the next page; absent on the last page and without `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(flatten)]
    policy: ReturnPolicy,
}

/// A unit and whether it can be returned.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReturnableUnit {
    #[serde(flatten)]
    id: UnitId,
    sku: String,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant_identifier: Option<String>,
    unit_price_amount_cents: i64,
    returnable: bool,
    /// Why the unit cannot be returned; absent if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    ineligible: Option<Ineligible>,
    /// End of the return window, exclusive.
    returnable_until: DateTime<Utc>,
    /// The unit's share of the line's amounts; absent until the unit ships.
    #[serde(skip_serializing_if = "Option::is_none")]
    amounts: Option<Amounts>,
    /// Maximum refund for the unit; absent until the unit ships.
    #[serde(skip_serializing_if = "Option::is_none")]
    refund_amount_cents: Option<i64>,
    /// Whether a return reason can offer variants of this product.
    exchange_offered: bool,
    /// Methods of the merchant that are not possible for this unit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable_methods: Vec<UnavailableMethod>,
    /// The terms by reason, result and method. Present only if the merchant has rules. A return has the highest cost of
    /// its units.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    choices: Vec<ReasonChoices>,
}

impl ReturnableOrder {
    /// The order without its units, and the references of the units.
    fn frame(
        order_units: &OrderUnits,
        identifier: &str,
        merchant: &Merchant,
    ) -> Result<(Self, Vec<UnitRef>), Error> {
        let no_order = || Error::NoOrder(identifier.to_owned());
        let projected = order_units.orders.get(identifier).ok_or_else(no_order)?;
        let order = &projected.order;
        let frame = Self {
            order_identifier: order.identifier.clone(),
            order_updated_at: order.updated_at,
            currency: order.currency.code().to_owned(),
            original_order_identifier: projected.original_order_identifier.clone(),
            exchange_possible: !order_units.is_exchanged(identifier),
            kept_amount_cents: merchant
                .settings
                .policy
                .limits_keeping()
                .then(|| order_units.kept_cents(identifier)),
            units: Vec::new(),
            next: None,
            policy: merchant.settings.returns_in(order.currency.code()).into_owned(),
        };
        Ok((frame, OrderUnits::unit_refs(projected)))
    }

    /// A page of the order: up to `limit` units after the first `skipped`, fewer if they are large.
    pub(crate) fn page(
        order_units: &OrderUnits,
        identifier: &str,
        merchant: &Merchant,
        now: Timestamp,
        (skipped, limit): (usize, usize),
    ) -> Result<Self, Error> {
        let (mut page, unit_refs) = Self::frame(order_units, identifier, merchant)?;
        let mut policies = LinePolicies::new(PolicyAt::new(&merchant.settings, now));
        let mut bytes = 0;
        for unit_ref in unit_refs.iter().skip(skipped) {
            if page.units.len() == limit || bytes > MAX_PAGE_BYTES {
                page.next = Some((skipped + page.units.len()).to_string());
                break;
            }
            let unit = show_unit_at(order_units, identifier, *unit_ref, &mut policies)?;
            bytes += serde_json::to_string(&unit)?.len();
            page.units.push(unit);
        }
        Ok(page)
    }
}

/// The JSON of a [`ReturnableOrder`], serialized while it is sent. Each unit repeats the fields of its line,
/// so a small order may have a body of hundreds of megabytes.
pub(crate) struct ReturnableJson {
    order_units: OrderUnits,
    order: String,
    merchant: Arc<Merchant>,
    policy: Arc<PreparedPolicy>,
    now: Timestamp,
    left: Peekable<vec::IntoIter<UnitRef>>,
    /// JSON before the units, until it is sent.
    head: String,
    /// JSON after the units, until it is sent.
    tail: Option<String>,
}

impl ReturnableJson {
    pub(crate) fn open(
        order_units: OrderUnits,
        identifier: &str,
        merchant: Arc<Merchant>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let (frame, unit_refs) = ReturnableOrder::frame(&order_units, identifier, &merchant)?;
        let frame = serde_json::to_string(&frame)?;
        // Quotes in values are escaped, so the first match is the list.
        let (head, tail) = frame.split_once(UNITS).ok_or_else(|| {
            Error::Internal(format!("the JSON of order {identifier} has no list of units"))
        })?;
        Ok(Self {
            left: unit_refs.into_iter().peekable(),
            head: format!("{head}{UNITS}"),
            tail: Some(tail.to_owned()),
            order: identifier.to_owned(),
            order_units,
            policy: Arc::new(PreparedPolicy::new(&merchant.settings)),
            merchant,
            now,
        })
    }

    /// The next chunk; `None` at the end.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let Self { order_units, order, merchant, policy, now, left, head, tail } = self;
        let Some(end) = tail.as_ref() else { return Ok(None) };
        let mut chunk = mem::take(head).into_bytes();
        let policy = PolicyAt::prepared(&merchant.settings, policy, *now);
        let mut policies = LinePolicies::new(policy);
        while chunk.len() < MIN_CHUNK_BYTES {
            let Some(unit_ref) = left.next() else {
                chunk.extend_from_slice(end.as_bytes());
                *tail = None;
                break;
            };
            let unit = show_unit_at(order_units, order, unit_ref, &mut policies)?;
            serde_json::to_writer(&mut chunk, &unit)?;
            if left.peek().is_some() {
                chunk.push(b',');
            }
        }
        Ok(Some(chunk))
    }
}

/// The unit with one of the references that [`OrderUnits::unit_refs`] returned for the order.
fn show_unit_at<'a>(
    order_units: &'a OrderUnits,
    order: &str,
    unit_ref: UnitRef,
    policies: &mut LinePolicies<'a>,
) -> Result<ReturnableUnit, Error> {
    let Some((id, unit)) = order_units.at(order, unit_ref) else {
        return Err(Error::Internal(format!("a unit of order {order} has disappeared")));
    };
    Ok(show_unit(id, &unit, policies))
}

fn show_unit<'a>(
    id: UnitId,
    unit: &LoadedUnit<'a>,
    policies: &mut LinePolicies<'a>,
) -> ReturnableUnit {
    let offers = policies.offers(unit.facts(), unit.has_variants());
    let Offers { ineligible, window_ends_at, unavailable_methods, exchange_offered, choices } =
        offers;
    ReturnableUnit {
        id,
        sku: unit.sku(),
        title: unit.line.title.clone(),
        image_url: unit.line.image_url.clone(),
        variant_identifier: unit.line.variant_identifier.clone(),
        unit_price_amount_cents: unit.line.unit_price_amount_cents,
        returnable: ineligible.is_none(),
        ineligible,
        returnable_until: window_ends_at,
        amounts: unit.unit.map(|unit| unit.amounts),
        refund_amount_cents: unit.unit.map(|unit| unit.amounts.paid()),
        unavailable_methods,
        exchange_offered,
        choices,
    }
}
