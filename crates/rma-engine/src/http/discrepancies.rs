//! `GET /v1/discrepancies`: discrepancies that people have to look at.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, get, web};
use chrono::{DateTime, Utc};
use domain::access::Scope;
use domain::returns::Discrepancy;
use platform::Problem;
use platform::http::{ErrorBody, PageLimit};
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{budgeted_response, merchant_of, without_nul};
use crate::App;
use crate::store::discrepancies::{Noted, Search, search};

/// Filters for discrepancies; all given filters must match.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiscrepancyQuery {
    /// For example `refund_of_unknown_return`.
    kind: Option<String>,
    order_identifier: Option<String>,
    rma_identifier: Option<String>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Discrepancies {
    /// Newest first.
    discrepancies: Vec<NotedDiscrepancy>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A recorded discrepancy.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NotedDiscrepancy {
    position: i64,
    /// When the discrepancy was first recorded.
    at: DateTime<Utc>,
    /// Description of `detail` for people.
    message: String,
    detail: Discrepancy,
}

/// Lists discrepancies.
#[utoipa::path(
    tag = "discrepancies", security(("bearer" = [])),
    params(
        DiscrepancyQuery,
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, body = Discrepancies), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 503, body = ErrorBody),
    ),
)]
#[get("/v1/discrepancies")]
pub(crate) async fn list_discrepancies(
    app: web::Data<App>,
    caller: Caller,
    query: web::Query<DiscrepancyQuery>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    let DiscrepancyQuery { kind, order_identifier, rma_identifier, limit, after } =
        query.into_inner();
    let texts = [&kind, &order_identifier, &rma_identifier];
    texts.into_iter().flatten().try_for_each(|text| without_nul(text))?;
    let wanted = Search { kind, order_identifier, rma_identifier, before: after };
    let mut conn = app.pool.get().await?;
    let mut noted = search(&mut conn, &merchant.identifier, &wanted, limit.rows()).await?;
    let next = limit.next(&mut noted, |last| last.position.to_string());
    let show = |Noted { position, at, discrepancy }| NotedDiscrepancy {
        position,
        at,
        message: discrepancy.to_string(),
        detail: discrepancy,
    };
    let discrepancies = noted.into_iter().map(show).collect();
    budgeted_response(&head, &Discrepancies { discrepancies, next })
}
