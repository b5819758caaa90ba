//! `GET /v1/order_summary`.

use actix_web::{HttpRequest, get, web};
use api::orders::OrderSummary;
use platform::Problem;
use platform::identity::Caller;

use super::require_reader;
use crate::App;
use crate::summary;

/// Summarize orders
///
/// The number and the times of the merchant's orders, the orders of the last 24 hours, and the last
/// rejected orders with their errors. Orders of the last second may be missing.
#[utoipa::path(
    tag = "orders",
    params(("X-Service-Id" = Option<String>, Header)),
    responses((status = 200, description = "The summary", body = OrderSummary)),
    security(("bearer" = ["orders"]), ("bearer" = ["read"])),
)]
#[get("/v1/order_summary")]
pub(crate) async fn summarize_orders(
    app: web::Data<App>,
    caller: Caller,
    request: HttpRequest,
) -> Result<web::Json<OrderSummary>, Problem> {
    require_reader(&caller)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    Ok(web::Json(summary::summarize(&app, &request, &merchant.identifier).await?))
}
