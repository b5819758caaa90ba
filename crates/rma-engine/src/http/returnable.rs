//! `GET /v1/orders/{identifier}/returnable`: what a shopper sees when starting a return.

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
use crate::shelf::{Place, Shelf, Shelved};
use crate::store::orders::Reading;

/// An answer is sent in pieces of at least this many bytes.
const PIECE: usize = 32 * 1024;
/// Where the list of units begins.
const UNITS: &str = r#""units":["#;

/// An order, unit by unit, and what the shopper can choose.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReturnableOrder {
    order_identifier: String,
    /// The snapshot that this rests on.
    order_updated_at: DateTime<Utc>,
    #[schema(example = "USD")]
    currency: String,
    /// For an exchange order: the order that it was placed against.
    #[serde(skip_serializing_if = "Option::is_none")]
    original_order_identifier: Option<String>,
    /// Whether an exchange or a gift card can be chosen; after one exchange only a refund can.
    exchange_possible: bool,
    units: Vec<ReturnableUnit>,
    #[serde(flatten)]
    policy: ReturnPolicy,
}

/// A unit and the verdict on it.
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
    /// Why not; there only when it cannot be returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    ineligible: Option<Ineligible>,
    /// The first moment at which it can no longer be returned.
    returnable_until: DateTime<Utc>,
    /// Its part of the line's amounts; there once it shipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    amounts: Option<Amounts>,
    /// What is refunded for it at most; there once it shipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    refund_amount_cents: Option<i64>,
    /// Whether reasons that offer an exchange lead to variants of this product.
    exchange_offered: bool,
}

/// Shows what of an order can be returned, and how.
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
    // What PostgreSQL cannot hold cannot be there.
    if identifier.contains('\0') {
        return Err(Error::NoOrder(identifier).into());
    }
    let wanted = BTreeSet::from([identifier.as_str()]);
    let mut conn = app.pool.get().await?;
    let shelf = Shelf::load(&mut conn, &merchant.identifier, &wanted, Reading::Looking).await?;
    // While there is a connection: so many orders at most are here without room.
    reserve_for_response(&head, shelf.weight())?;
    let answer = Answer::open(shelf, &identifier, merchant, app.clock.now())?;
    Ok(HttpResponse::Ok().content_type("application/json").body(answer))
}

/// An answer that is written while it is sent. Each unit repeats what its line says, so that a
/// small order may have an answer of hundreds of megabytes.
struct Answer {
    shelf: Shelf,
    order: String,
    merchant: Arc<Merchant>,
    now: Timestamp,
    left: Peekable<vec::IntoIter<Place>>,
    /// What stands before the units, until it is sent, and behind them.
    head: String,
    tail: Option<String>,
}

impl Answer {
    fn open(
        shelf: Shelf,
        identifier: &str,
        merchant: Arc<Merchant>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let no_order = || Error::NoOrder(identifier.to_owned());
        let projected = shelf.orders.get(identifier).ok_or_else(no_order)?;
        let places = Shelf::places(projected);
        let order = &projected.order;
        let frame = serde_json::to_string(&ReturnableOrder {
            order_identifier: order.identifier.clone(),
            order_updated_at: order.updated_at,
            currency: order.currency.code().to_owned(),
            original_order_identifier: projected.original_order_identifier.clone(),
            exchange_possible: !shelf.is_exchanged(identifier),
            units: Vec::new(),
            policy: merchant.settings.in_currency(order.currency.code()).returns.clone(),
        })?;
        // Quotes inside of names are escaped, so this is the list and nothing else.
        let (head, tail) = frame.split_once(UNITS).ok_or(Error::Damaged("order"))?;
        Ok(Self {
            left: places.into_iter().peekable(),
            head: format!("{head}{UNITS}"),
            tail: Some(tail.to_owned()),
            order: identifier.to_owned(),
            shelf,
            merchant,
            now,
        })
    }

    /// The next piece; none once everything is written.
    fn write(&mut self) -> serde_json::Result<Option<Bytes>> {
        if self.tail.is_none() {
            return Ok(None);
        }
        let mut piece = mem::take(&mut self.head).into_bytes();
        while piece.len() < PIECE {
            let Some(place) = self.left.next() else {
                piece.extend(self.tail.take().unwrap_or_default().into_bytes());
                break;
            };
            if let Some((id, unit)) = self.shelf.at(&self.order, place) {
                serde_json::to_writer(&mut piece, &show_unit(id, &unit, &self.merchant, self.now))?;
            }
            if self.left.peek().is_some() {
                piece.push(b',');
            }
        }
        Ok(Some(piece.into()))
    }
}

impl MessageBody for Answer {
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
    unit: &Shelved<'_>,
    merchant: &Merchant,
    now: Timestamp,
) -> ReturnableUnit {
    // Whatever it is returned for, it can be for a refund.
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
