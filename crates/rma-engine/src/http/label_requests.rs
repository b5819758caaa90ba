//! `/v1/label_requests`: lists and shows label requests.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, get, web};
use domain::access::{MerchantId, Scope};
use domain::labels::LabelState;
use platform::Problem;
use platform::http::{ErrorBody, ListOrder, PageLimit, Query};
use platform::identity::Caller;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::budgeted_response;
use crate::App;
use crate::labels::requests::{self, LabelRequestDetails, LabelRequests};
use crate::store::label_request_search::LabelRequestSearch;

/// Scopes that read label requests.
const READERS: [Scope; 3] = [Scope::Labels, Scope::Returns, Scope::Read];

/// Filters for label requests; all given filters must match.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelRequestQuery {
    /// Label requests of this merchant.
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    rma_identifier: Option<String>,
    state: Option<LabelState>,
    /// `newest` or `oldest` first
    #[serde(default)]
    #[param(inline)]
    order: ListOrder,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<Uuid>,
}

/// The merchant whose label requests a caller may see: that of the request, else the one that a filter names, else
/// `None` for all merchants.
fn merchant_of(
    app: &App,
    caller: &Caller,
    named: Option<&MerchantId>,
) -> Result<Option<MerchantId>, Problem> {
    caller.require_any(&READERS)?;
    let is_of_all = caller.merchant_scope().is_none() && named.is_none();
    if is_of_all && caller.require(Scope::Labels).is_ok() {
        return Ok(None);
    }
    Ok(app.merchants.listed_for(caller, named)?)
}

/// List label requests
///
/// Newest first unless `order` is `oldest`. A label provider that makes labels later polls those with the state
/// `accepted`, the oldest first. A token of a merchant lists the merchant's requests. A token without a merchant and with
/// the scope `labels` or `read` lists those of every merchant, or of the one in `merchant` or `X-Service-Id`.
#[utoipa::path(
    tag = "labels",
    security(("bearer" = ["labels"]), ("bearer" = ["returns"]), ("bearer" = ["read"])),
    params(
        LabelRequestQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, body = LabelRequests)),
)]
#[get("/v1/label_requests")]
pub(crate) async fn list_label_requests(
    app: web::Data<App>,
    caller: Caller,
    query: Query<LabelRequestQuery>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let query = query.into_inner();
    let wanted = LabelRequestSearch {
        merchant: merchant_of(&app, &caller, query.merchant.as_ref())?,
        rma_identifier: query.rma_identifier,
        state: query.state,
        order: query.order,
        after: query.after,
    };
    let mut conn = app.pool.reader(wanted.merchant.as_ref().map(MerchantId::as_str)).await?;
    budgeted_response(&head, &requests::list(&mut conn, &wanted, query.limit).await?)
}

/// Show a label request
///
/// With the message to the label provider.
#[utoipa::path(
    tag = "labels",
    security(("bearer" = ["labels"]), ("bearer" = ["returns"]), ("bearer" = ["read"])),
    params(
        ("id" = Uuid, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The label request", body = LabelRequestDetails),
        (status = 404, description = "No such label request of this merchant", body = ErrorBody),
    ),
)]
#[get("/v1/label_requests/{id}")]
pub(crate) async fn show_label_request(
    app: web::Data<App>,
    caller: Caller,
    id: web::Path<Uuid>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, None)?;
    let mut conn = app.pool.get().await?;
    let shown = requests::show(&mut conn, merchant.as_ref(), id.into_inner()).await?;
    budgeted_response(&head, &shown)
}
