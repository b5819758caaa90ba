//! The record of the samples that people and clients sent to endpoints.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use platform::Problem;
use platform::http::{ErrorBody, PageLimit, Query};
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::access::readable_merchant;
use super::parse_merchant;
use crate::Deliveries;
use crate::store::{self, SampleRequest};

/// Filter and page of a list of sample requests.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct SampleRequestQuery {
    merchant: Option<String>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page.
    after: Option<Uuid>,
}

/// A page of sample requests, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct SampleRequestPage {
    sample_requests: Vec<SampleRequestView>,
    /// Pass as `after` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A request to send samples to a merchant's endpoints.
#[derive(Serialize, ToSchema)]
pub(crate) struct SampleRequestView {
    id: Uuid,
    merchant: String,
    /// The person or client.
    requested_by: String,
    /// The event of the samples, for example `rma.created`, or `sample`.
    event: String,
    /// Message kinds whose endpoints got a sample, and `exchange-variants` if variants were requested.
    kinds: Vec<String>,
    requested_at: DateTime<Utc>,
}

impl From<SampleRequest> for SampleRequestView {
    fn from(request: SampleRequest) -> Self {
        let SampleRequest { id, merchant, requested_by, event, kinds, requested_at } = request;
        Self { id, merchant, requested_by, event, kinds, requested_at }
    }
}

/// List sample requests
///
/// Lists who sent samples to the endpoints of a merchant, newest first, of the last 400 days.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])),
    params(SampleRequestQuery),
    responses(
        (status = 200, body = SampleRequestPage), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    )
)]
#[get("/v1/sample_requests")]
pub(crate) async fn list_sample_requests(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: Query<SampleRequestQuery>,
) -> Result<HttpResponse, Problem> {
    let merchant = readable_merchant(&caller, parse_merchant(query.merchant.as_deref())?)?;
    let merchant = merchant.as_ref().map(MerchantId::as_str);
    let mut conn = deliveries.0.pool.reader(merchant).await?;
    let rows = query.limit.rows();
    let mut found = store::newest_sample_requests(&mut conn, merchant, query.after, rows).await?;
    let next = query.limit.next(&mut found, |last| last.id.to_string());
    let sample_requests = found.into_iter().map(SampleRequestView::from).collect();
    Ok(HttpResponse::Ok().json(SampleRequestPage { sample_requests, next }))
}
