//! `GET /v1/return_counts`: the lengths of work lists.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{get, web};
use api::returns::ReturnCounts;
use domain::access::MerchantId;
use platform::Problem;
use platform::http::Query;
use platform::identity::Caller;
use serde::Deserialize;
use utoipa::IntoParams;

use super::listed_merchant;
use crate::App;
use crate::store::counts;

/// The merchant of the counts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct CountsQuery {
    /// Returns of this merchant.
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
}

/// Count returns by work list
///
/// The returns that need each step next, those with overdue units, and the open discrepancies, each counted up to 1,000.
/// A token of a merchant counts the merchant's returns. A token without a merchant and with the scope `read` counts those
/// of every merchant, or of the one in `merchant` or `X-Service-Id`.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"]), ("bearer" = ["read"])),
    params(
        CountsQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, description = "The counts", body = ReturnCounts)),
)]
#[get("/v1/return_counts")]
pub(crate) async fn count_returns(
    app: web::Data<App>,
    caller: Caller,
    query: Query<CountsQuery>,
) -> Result<web::Json<ReturnCounts>, Problem> {
    let merchant = listed_merchant(&app, &caller, query.merchant.as_ref())?;
    let mut conn = app.pool.reader(merchant.as_ref().map(MerchantId::as_str)).await?;
    Ok(web::Json(counts::count(&mut conn, merchant.as_ref()).await?))
}
