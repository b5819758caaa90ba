//! `GET /v1/orders/{identifier}`: an order with its units, refunds and returns.

use actix_web::{HttpRequest, HttpResponse, get, web};
use api::returns::OrderView;
use platform::Problem;
use platform::http::reserve_for_response;
use platform::identity::Caller;

use super::{budgeted_response, readable_merchant};
use crate::App;
use crate::orders::units::OrderUnits;
use crate::orders::view;
use crate::store::orders::RowLock;

/// Show an order with its units, refunds and returns
///
/// For support: each shipped unit has the return that it is in and the refund that covers it.
#[utoipa::path(
    tag = "returns",
    params(
        ("identifier" = String, Path, description = "The order's identifier in the merchant's systems"),
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, description = "The order", body = OrderView)),
    security(("bearer" = ["returns"]), ("bearer" = ["read"])),
)]
#[get("/v1/orders/{identifier}")]
pub(crate) async fn show_order(
    app: web::Data<App>,
    caller: Caller,
    identifier: web::Path<String>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let merchant = readable_merchant(&app, &caller)?;
    let mut conn = app.pool.get().await?;
    let wanted = [identifier.as_str()].into();
    let id = &merchant.identifier;
    let order_units = OrderUnits::load(&conn, id, &wanted, RowLock::None).await?;
    reserve_for_response(&head, order_units.response_bytes())?;
    budgeted_response(&head, &view::load(&mut conn, id, &order_units, &identifier).await?)
}
