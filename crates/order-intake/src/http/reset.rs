//! `POST /v1/orders/{identifier}/reset`.

use actix_web::{post, web};
use domain::access::Scope;
use platform::Problem;
use platform::http::ErrorBody;
use platform::identity::Caller;

use crate::App;
use crate::reset::{self, ResetOrder};

/// Reset an order
///
/// For an order whose `updated_at` lies in the future by mistake, so that correct snapshots are stale. The
/// stored snapshot gets the time of the order's creation. The merchant's next snapshot is stored, whatever its
/// `updated_at` is. The reset is recorded with the operator.
#[utoipa::path(
    tag = "orders",
    params(
        ("identifier" = String, Path, description = "The order's identifier in the merchant's systems"),
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The order was reset", body = ResetOrder),
        (status = 409, description = "The order's time is not in the future", body = ErrorBody),
    ),
    security(("bearer" = ["operator"])),
)]
#[post("/v1/orders/{identifier}/reset")]
pub(crate) async fn reset_order(
    app: web::Data<App>,
    caller: Caller,
    identifier: web::Path<String>,
) -> Result<web::Json<ResetOrder>, Problem> {
    caller.require(Scope::Operator)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    let identifier = identifier.into_inner();
    let reset = reset::reset(&app, &merchant.identifier, identifier, caller.actor()).await?;
    Ok(web::Json(reset))
}
