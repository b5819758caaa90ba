//! `GET /v1/orders/{identifier}/returnable`: the units and choices that a shopper sees when
//! starting a return.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{mem, vec};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, get, web};
use chrono::{DateTime, Utc};
use domain::access::Scope;
use domain::merchant::{Merchant, ReturnPolicy};
use domain::returns::{Amounts, Ineligible, Resolution, UnitId, check_eligibility, window_ends_at};
use platform::http::{ErrorBody, reserve_for_response};
use platform::identity::Caller;
use platform::{Problem, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::merchant_of;
use crate::App;
use crate::error::Error;
use crate::order_units::{OrderUnits, UnitRef, UnitView};
use crate::store::orders::RowLock;

/// Minimum bytes of a body chunk, except the last.
const PIECE: usize = 32 * 1024;
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
    units: Vec<ReturnableUnit>,
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
}

/// Shows which units of an order can be returned.
#[utoipa::path(
    tag = "returns",
    params(
        ("identifier" = String, Path, description = "The order's identifier in the merchant's systems"),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, description = "The order's units", body = ReturnableOrder),
        (status = 401, description = "No valid token", body = ErrorBody),
        (status = 403, description = "The token may not do this", body = ErrorBody),
        (status = 404, description = "No such order of this merchant", body = ErrorBody),
        (status = 503, description = "Not possible at the moment; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = [])),
)]
#[get("/v1/orders/{identifier}/returnable")]
pub(crate) async fn show_returnable(
    app: web::Data<App>,
    caller: Caller,
    identifier: web::Path<String>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    let identifier = identifier.into_inner();
    // PostgreSQL cannot store a NUL character.
    if identifier.contains('\0') {
        return Err(Error::NoOrder(identifier).into());
    }
    let wanted = BTreeSet::from([identifier.as_str()]);
    let mut conn = app.pool.get().await?;
    let order_units =
        OrderUnits::load(&mut conn, &merchant.identifier, &wanted, RowLock::None).await?;
    // The handler still holds its connection, so the pool size limits how many orders are loaded
    // before their memory is reserved.
    reserve_for_response(&head, order_units.weight())?;
    let body = ReturnableBody::open(order_units, &identifier, merchant, app.clock.now())?;
    Ok(HttpResponse::Ok().content_type("application/json").body(body))
}

/// A response body that is serialized while it is sent. Each unit repeats the fields of its line,
/// so a small order may have a body of hundreds of megabytes.
struct ReturnableBody {
    order_units: OrderUnits,
    order: String,
    merchant: Arc<Merchant>,
    now: Timestamp,
    left: Peekable<vec::IntoIter<UnitRef>>,
    /// JSON before the units, until it is sent; `tail` is the JSON after them.
    head: String,
    tail: Option<String>,
}

impl ReturnableBody {
    fn open(
        order_units: OrderUnits,
        identifier: &str,
        merchant: Arc<Merchant>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let no_order = || Error::NoOrder(identifier.to_owned());
        let projected = order_units.orders.get(identifier).ok_or_else(no_order)?;
        let unit_refs = OrderUnits::unit_refs(projected);
        let order = &projected.order;
        let frame = serde_json::to_string(&ReturnableOrder {
            order_identifier: order.identifier.clone(),
            order_updated_at: order.updated_at,
            currency: order.currency.code().to_owned(),
            original_order_identifier: projected.original_order_identifier.clone(),
            exchange_possible: !order_units.is_exchanged(identifier),
            units: Vec::new(),
            policy: merchant.settings.in_currency(order.currency.code()).returns.clone(),
        })?;
        // Quotes in values are escaped, so the first match is the list.
        let (head, tail) = frame.split_once(UNITS).ok_or(Error::Corrupt("order"))?;
        Ok(Self {
            left: unit_refs.into_iter().peekable(),
            head: format!("{head}{UNITS}"),
            tail: Some(tail.to_owned()),
            order: identifier.to_owned(),
            order_units,
            merchant,
            now,
        })
    }

    /// The next chunk; `None` at the end.
    fn write(&mut self) -> serde_json::Result<Option<Bytes>> {
        if self.tail.is_none() {
            return Ok(None);
        }
        let mut piece = mem::take(&mut self.head).into_bytes();
        while piece.len() < PIECE {
            let Some(unit_ref) = self.left.next() else {
                piece.extend(self.tail.take().unwrap_or_default().into_bytes());
                break;
            };
            if let Some((id, unit)) = self.order_units.at(&self.order, unit_ref) {
                serde_json::to_writer(&mut piece, &show_unit(id, &unit, &self.merchant, self.now))?;
            }
            if self.left.peek().is_some() {
                piece.push(b',');
            }
        }
        Ok(Some(piece.into()))
    }
}

impl MessageBody for ReturnableBody {
    type Error = serde_json::Error;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<serde_json::Result<Bytes>>> {
        Poll::Ready(self.write().transpose())
    }
}

fn show_unit(
    id: UnitId,
    unit: &UnitView<'_>,
    merchant: &Merchant,
    now: Timestamp,
) -> ReturnableUnit {
    // Every returnable unit can be returned for a refund.
    let (settings, facts) = (&merchant.settings, unit.facts(&Resolution::Refund));
    let ineligible = check_eligibility(&facts, settings, now, None).err();
    let some_reason_offers = settings.returns.reasons.iter().any(|it| it.offers_exchange);
    ReturnableUnit {
        id,
        sku: unit.sku(),
        title: unit.line.title.clone(),
        image_url: unit.line.image_url.clone(),
        variant_identifier: unit.line.variant_identifier.clone(),
        unit_price_amount_cents: unit.line.unit_price_amount_cents,
        returnable: ineligible.is_none(),
        ineligible,
        returnable_until: window_ends_at(&facts, settings),
        amounts: unit.unit.map(|unit| unit.amounts),
        refund_amount_cents: unit.unit.map(|unit| unit.amounts.paid()),
        exchange_offered: unit.has_variants() && !unit.is_order_exchanged && some_reason_offers,
    }
}
