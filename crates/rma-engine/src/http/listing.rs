//! `GET /v1/returns` and a return's timeline.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, get, web};
use chrono::{DateTime, Utc};
use domain::access::Scope;
use domain::returns::RmaStatus;
use platform::Problem;
use platform::http::{ErrorBody, PageLimit};
use platform::identity::Caller;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{budgeted_response, merchant_of};
use crate::App;
use crate::error::Error;
use crate::listing::{self, Returns, Timeline, is_plausible, read_cursor};
use crate::store::search::Search;

/// Filters for returns; all given filters must match.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
    /// Returns with units of this order.
    order_identifier: Option<String>,
    status: Option<RmaStatus>,
    /// E-mail address of the shopper, or of the giftee for a gift; case-insensitive.
    email: Option<String>,
    /// Returns with units in the parcel with this tracking number.
    tracking_number: Option<String>,
    /// Returns created at this time or later.
    from: Option<DateTime<Utc>>,
    /// Returns created before this time.
    to: Option<DateTime<Utc>>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

/// Page of a timeline.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimelineQuery {
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<i64>,
}

/// List returns
///
/// The returns of the merchant that match all filters, newest first.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"])),
    params(
        Listing,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses(
        (status = 200, body = Returns), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 503, body = ErrorBody),
    ),
)]
#[get("/v1/returns")]
pub(crate) async fn list_returns(
    app: web::Data<App>,
    caller: Caller,
    query: web::Query<Listing>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    let limit = query.limit;
    let wanted = query.into_inner().parse()?;
    let mut conn = app.pool.get().await?;
    let found = listing::list_returns(&mut conn, &merchant, &wanted, limit).await?;
    budgeted_response(&head, &found)
}

/// Show the timeline of a return
///
/// Every change of the return with its time and its cause, oldest first.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"])),
    params(
        ("rma_identifier" = String, Path),
        TimelineQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses(
        (status = 200, body = Timeline), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody), (status = 503, body = ErrorBody),
    ),
)]
#[get("/v1/returns/{rma_identifier}/timeline")]
pub(crate) async fn show_timeline(
    app: web::Data<App>,
    caller: Caller,
    rma_identifier: web::Path<String>,
    query: web::Query<TimelineQuery>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    let TimelineQuery { limit, after } = query.into_inner();
    let mut conn = app.pool.get().await?;
    let after = after.unwrap_or(0);
    let page = listing::timeline(&mut conn, &merchant, &rma_identifier, after, limit).await?;
    budgeted_response(&head, &page)
}

impl Listing {
    fn parse(self) -> Result<Search, Problem> {
        if [self.from, self.to].into_iter().flatten().any(|time| !is_plausible(time)) {
            return Err(Error::Malformed("from and to must lie in the years 1 to 9999").into());
        }
        Ok(Search {
            order_identifier: self.order_identifier,
            status: self.status,
            email: self.email.map(|email| email.to_lowercase()),
            tracking_number: self.tracking_number,
            from: self.from,
            to: self.to,
            after: self.after.as_deref().map(read_cursor).transpose()?,
        })
    }
}
