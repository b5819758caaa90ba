//! `GET /v1/returns` and a return's timeline.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, get, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Datelike as _, Utc};
use domain::access::Scope;
use domain::returns::{Rma, RmaStatus};
use platform::http::{BadCursor, ErrorBody, PageLimit};
use platform::identity::Caller;
use platform::{Problem, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{budgeted_response, merchant_of, without_nul};
use crate::App;
use crate::error::Error;
use crate::returns::find;
use crate::store::search::{Search, search};
use crate::store::timeline::{self, TimelineEntry};

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

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Returns {
    /// Newest first.
    returns: Vec<Rma>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
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

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Timeline {
    /// Oldest first.
    entries: Vec<TimelineEntry>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists the merchant's returns.
#[utoipa::path(
    tag = "returns", security(("bearer" = [])),
    params(
        Listing,
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
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
    listing: web::Query<Listing>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    let limit = listing.limit;
    let wanted = listing.into_inner().parse()?;
    let mut conn = app.pool.get().await?;
    let (mut returns, is_truncated) =
        search(&mut conn, &merchant.identifier, &wanted, limit.rows()).await?;
    let next = limit.next_of(&mut returns, is_truncated, cursor);
    budgeted_response(&head, &Returns { returns, next })
}

/// Shows the timeline of a return.
#[utoipa::path(
    tag = "returns", security(("bearer" = [])),
    params(
        ("rma_identifier" = String, Path),
        TimelineQuery,
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
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
    let rma = find(&mut conn, &merchant, &rma_identifier).await?.rma_identifier;
    let (after, rows) = (after.unwrap_or(0), limit.rows());
    let page = timeline::page(&mut conn, &merchant.identifier, &rma, after, rows).await?;
    let (mut entries, is_truncated) = page;
    let next = limit.next_of(&mut entries, is_truncated, |last| last.position.to_string());
    budgeted_response(&head, &Timeline { entries, next })
}

impl Listing {
    fn parse(self) -> Result<Search, Problem> {
        let texts = [&self.order_identifier, &self.email, &self.tracking_number];
        texts.into_iter().flatten().try_for_each(|text| without_nul(text))?;
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

/// Whether PostgreSQL can store the time and it is in the range that the API accepts.
fn is_plausible(time: Timestamp) -> bool {
    (1..=9999).contains(&time.year())
}

/// Cursor of a return in the list: creation time in microseconds and identifier.
fn cursor(rma: &Rma) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {}", rma.created_at.timestamp_micros(), rma.rma_identifier))
}

fn read_cursor(text: &str) -> Result<(Timestamp, String), BadCursor> {
    let read = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let (time, identifier) = text.split_once(' ')?;
        let time = DateTime::from_timestamp_micros(time.parse().ok()?)?;
        let is_ours = is_plausible(time) && !identifier.contains('\0');
        is_ours.then(|| (time, identifier.to_owned()))
    };
    read().ok_or(BadCursor)
}
