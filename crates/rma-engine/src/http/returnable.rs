//! `GET /v1/orders/{identifier}/returnable`: the units and choices that a shopper sees when
//! starting a return.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, get, web};
use platform::Problem;
use platform::http::{ErrorBody, reserve_for_response};
use platform::identity::Caller;

use super::readable_merchant;
use crate::App;
use crate::order_units::OrderUnits;
use crate::returnable::{ReturnableJson, ReturnableOrder};
use crate::store::orders::RowLock;

/// Show which units of an order can be returned
///
/// Each unit has its refund amount, or the reason that it cannot be returned. The response also has the
/// return methods and reasons of the merchant.
#[utoipa::path(
    tag = "returns",
    params(
        ("identifier" = String, Path, description = "The order's identifier in the merchant's systems"),
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The order's units", body = ReturnableOrder),
        (status = 401, description = "No valid token", body = ErrorBody),
        (status = 403, description = "The token may not do this", body = ErrorBody),
        (status = 404, description = "No such order of this merchant", body = ErrorBody),
        (status = 503, description = "Not possible at the moment; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = ["returns"]), ("bearer" = ["read"])),
)]
#[get("/v1/orders/{identifier}/returnable")]
pub(crate) async fn show_returnable(
    app: web::Data<App>,
    caller: Caller,
    identifier: web::Path<String>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let merchant = readable_merchant(&app, &caller)?;
    let identifier = identifier.into_inner();
    let wanted = BTreeSet::from([identifier.as_str()]);
    let mut conn = app.pool.get().await?;
    let order_units =
        OrderUnits::load(&mut conn, &merchant.identifier, &wanted, RowLock::None).await?;
    // The handler still holds its connection, so the pool size limits how many orders are loaded
    // before their memory is reserved.
    reserve_for_response(&head, order_units.weight())?;
    let json = ReturnableJson::open(order_units, &identifier, merchant, app.clock.now())?;
    Ok(HttpResponse::Ok().content_type("application/json").body(ReturnableBody(json)))
}

/// A response body that is serialized while it is sent.
struct ReturnableBody(ReturnableJson);

impl MessageBody for ReturnableBody {
    type Error = serde_json::Error;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<serde_json::Result<Bytes>>> {
        let chunk = self.0.next_chunk().transpose();
        Poll::Ready(chunk.map(|chunk| chunk.map(Bytes::from)))
    }
}
