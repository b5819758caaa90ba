//! `/v1/discrepancies`: listing and resolving discrepancies.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, get, post, web};
use api::returns::RecordedDiscrepancy;
use domain::access::{MerchantId, Scope};
use domain::json::{Object, object, read_fields, text};
use platform::Problem;
use platform::http::{ErrorBody, Json, ListOrder, PageLimit, Query, Sequential};
use platform::identity::Caller;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{budgeted_response, listed_merchant, reject_portal};
use crate::App;
use crate::discrepancies::{self, Decision, Discrepancies};
use crate::store::discrepancy_search::{DiscrepancySearch, DiscrepancyState};

/// Filters for discrepancies; all given filters must match.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiscrepancyQuery {
    /// Discrepancies of this merchant.
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    /// For example `refund_of_unknown_return`.
    kind: Option<String>,
    order_identifier: Option<String>,
    rma_identifier: Option<String>,
    #[param(inline)]
    state: Option<DiscrepancyState>,
    /// `newest` or `oldest` first
    #[serde(default)]
    #[param(inline)]
    order: ListOrder,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<i64>,
}

/// List discrepancies
///
/// Facts that contradict each other, for example refunds of unknown returns, newest first unless `order` is
/// `oldest`. A token of a merchant lists the merchant's discrepancies. A token without a merchant and with the
/// scope `read` lists those of every merchant, or of the one in `merchant` or `X-Service-Id`.
#[utoipa::path(
    tag = "discrepancies", security(("bearer" = ["returns"]), ("bearer" = ["read"])),
    params(
        DiscrepancyQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, body = Discrepancies)),
)]
#[get("/v1/discrepancies")]
pub(crate) async fn list_discrepancies(
    app: web::Data<App>,
    caller: Caller,
    query: Query<DiscrepancyQuery>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let query = query.into_inner();
    let wanted = DiscrepancySearch {
        merchant: listed_merchant(&app, &caller, query.merchant.as_ref())?,
        kind: query.kind,
        order_identifier: query.order_identifier,
        rma_identifier: query.rma_identifier,
        state: query.state,
        order: query.order,
        after: query.after,
    };
    let mut conn = app.pool.reader(wanted.merchant.as_ref().map(MerchantId::as_str)).await?;
    budgeted_response(&head, &discrepancies::list(&mut conn, &wanted, query.limit).await?)
}

/// Resolve a discrepancy
///
/// Records who checked it and why nothing more has to be done. With `rma_identifier`, a refund that
/// names an unknown return is matched with that return, also if the discrepancy was resolved with only a
/// note before. Possible for the merchant and for operators, not for portals. Operators need not name the
/// merchant.
#[utoipa::path(
    tag = "discrepancies",
    security(("bearer" = ["manage"]), ("bearer" = ["returns"]), ("bearer" = ["operator"])),
    params(
        ("position" = i64, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    request_body(content = Decision, example = json!({ "note": "The merchant mistyped the RMA", "rma_identifier": "RMA-0123456789ABCDEF" })),
    responses(
        (status = 200, description = "The discrepancy; the same decision again changes nothing", body = RecordedDiscrepancy),
        (status = 409, description = "The refund was matched already, or the discrepancy was resolved with another note", body = ErrorBody),
    ),
)]
#[post("/v1/discrepancies/{position}/resolve")]
pub(crate) async fn resolve_discrepancy(
    app: web::Data<App>,
    position: web::Path<i64>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<web::Json<RecordedDiscrepancy>, Problem> {
    caller.require_any(&[Scope::Manage, Scope::Returns])?;
    reject_portal(&caller)?;
    let merchant = app.merchants.listed_for(&caller, None)?;
    let decision = body.read(object(read_decision)).await?;
    let actor = caller.actor();
    let resolved = discrepancies::resolve(&app, merchant.as_ref(), actor, *position, &decision);
    Ok(web::Json(resolved.await?))
}

pub(crate) fn read_decision(body: &Object<'_>) -> Option<Decision> {
    read_fields!(body => Decision {
        note: body.required("note", text(1..=1_000)),
        rma_identifier: body.optional("rma_identifier", text(1..=255)),
    })
}
