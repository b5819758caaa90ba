//! `GET /v1/returns` and a return's timeline.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, get, web};
use api::delivery::State;
use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::merchant::ReturnMethod;
use domain::returns::{ResolutionKind, RmaStatus, WorkList};
use platform::Problem;
use platform::http::{ListOrder, PageLimit, Query, ResponseProgress, reserve_for_response};
use platform::shopper_proof::{ProvenOrders, Requester};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{READERS, budgeted_response, listed_merchant, merchant_or_shopper};
use crate::App;
use crate::error::Error;
use crate::returns::exporting::{Export, ExportFormat, PAGE_BYTES};
use crate::returns::listing::{
    self, Returns, TimelineView, is_plausible, read_change_cursor, read_cursor,
};
use crate::store::search::Search;

/// A shorter text begins too many identifiers.
const MIN_PREFIX_CHARS: usize = 8;

/// Filters for returns; all given filters must match.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
    /// Returns of this merchant.
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    rma_identifier: Option<String>,
    /// Returns whose identifier begins with this text of at least 8 characters. At most 50 are found.
    rma_identifier_prefix: Option<String>,
    /// Returns with units of this order.
    order_identifier: Option<String>,
    status: Option<RmaStatus>,
    /// Returns that need this step next.
    work_list: Option<WorkList>,
    /// With `true`, returns with exchanged units that did not come back in time and were not waived.
    overdue: Option<bool>,
    /// E-mail address of the shopper, of the giftee for a gift, or of the person who withdrew from the contract;
    /// case-insensitive.
    email: Option<String>,
    /// Returns with units in the parcel with this tracking number.
    tracking_number: Option<String>,
    return_method: Option<ReturnMethod>,
    /// Returns with a unit with this resolution.
    resolution: Option<ResolutionKind>,
    /// Returns with a unit with this reason, one of the merchant's codes.
    return_reason: Option<String>,
    /// Returns with a unit with this SKU. Without a merchant, at most 50 are found.
    sku: Option<String>,
    /// Returns for whose units at least this amount was paid. Canceled units do not count.
    min_amount_cents: Option<i64>,
    /// Returns for whose units at most this amount was paid.
    max_amount_cents: Option<i64>,
    /// Returns whose last message to the merchant has this state.
    message_state: Option<State>,
    /// Returns created at this time or later.
    from: Option<DateTime<Utc>>,
    /// Returns created before this time.
    to: Option<DateTime<Utc>>,
    /// Returns that changed at this time or later, in the order of their last changes; `order` has no effect. Not with
    /// an identifier or a tracking number.
    updated_from: Option<DateTime<Utc>>,
    /// Returns whose last change was before this time.
    updated_to: Option<DateTime<Utc>>,
    /// `newest` or `oldest` first
    #[serde(default)]
    #[param(inline)]
    order: ListOrder,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` or the `resume` of a page
    after: Option<String>,
    /// `csv` or `ndjson`: the whole list as a file, not only a page
    #[param(inline)]
    format: Option<ExportFormat>,
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
/// The returns that match all filters, newest first unless `order` is `oldest`. Each page reads up to 2,000 returns. A
/// page of filters that few of them match can have few returns or none, and still a `next`.
///
/// To keep a copy of all returns, begin with an `updated_from` before the first return, follow `next` to the last page,
/// and continue later with its `resume` as `after`. Each change of a return lists it again, once, and no change is missed.
/// Changes are listed in the order of the database's clock, after all transactions that began before them.
///
/// With `format`, the response is a file with all returns that match: a line of JSON for each, or a row of CSV, in which
/// texts that spreadsheets would run as formulas begin with an apostrophe. If the response ends early, the file is not
/// complete.
///
/// A token of a merchant finds the merchant's returns. A token without a merchant and with the scope `read` finds the returns of every
/// merchant, or of the one in `merchant` or `X-Service-Id`. A shopper must name a proven order in
/// `order_identifier`, uses no other filter, and gets the shopper's view.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"]), ("bearer" = ["read"]), ("bearer" = ["shopper"])),
    params(
        Listing,
        ("X-Service-Id" = Option<String>, Header),
        ("X-Shopper-Proof" = Option<String>, Header),
    ),
    responses((status = 200, body = Returns)),
)]
#[get("/v1/returns")]
pub(crate) async fn list_returns(
    app: web::Data<App>,
    requester: Requester,
    query: Query<Listing>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let shopper = requester.authorize(&READERS)?;
    let merchant = if let Some(shopper) = shopper {
        query.check_filters_of(shopper)?;
        Some(app.merchants.merchant_for(&requester.caller)?.identifier.clone())
    } else {
        listed_merchant(&app, &requester.caller, query.merchant.as_ref())?
    };
    let limit = query.limit;
    let format = query.format;
    let wanted = Search { merchant, ..query.into_inner().parse()? };
    if let Some(format) = format {
        reserve_for_response(&head, PAGE_BYTES)?;
        let progress = ResponseProgress::of(&head);
        return Ok(Export { app, wanted, format, progress }.respond().await?);
    }
    // A shopper names an order, so the list is short. Searches of staff do not make shoppers wait.
    let found = if shopper.is_some() {
        let mut conn = app.pool.get().await?;
        listing::list_returns(&mut conn, &app.merchants, &wanted, limit, shopper).await?
    } else {
        let merchant = wanted.merchant.as_ref().map(MerchantId::as_str);
        let mut conn = app.pool.reader(merchant).await?;
        listing::list_returns(&mut conn, &app.merchants, &wanted, limit, shopper).await?
    };
    budgeted_response(&head, &found)
}

/// Show the timeline of a return
///
/// Every change of the return with its time, the person, client or event that caused it, and the message
/// that the merchant was sent, oldest first. A shopper sees the steps of the return instead, without
/// actors and messages.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"]), ("bearer" = ["read"]), ("bearer" = ["shopper"])),
    params(
        ("rma_identifier" = String, Path),
        TimelineQuery,
        ("X-Service-Id" = Option<String>, Header),
        ("X-Shopper-Proof" = Option<String>, Header),
    ),
    responses((status = 200, body = TimelineView)),
)]
#[get("/v1/returns/{rma_identifier}/timeline")]
pub(crate) async fn show_timeline(
    app: web::Data<App>,
    requester: Requester,
    rma_identifier: web::Path<String>,
    query: Query<TimelineQuery>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let (merchant, shopper) = merchant_or_shopper(&app, &requester, &READERS)?;
    let TimelineQuery { limit, after } = query.into_inner();
    let mut conn = app.pool.get().await?;
    let page = (after.unwrap_or(0), limit);
    let page = listing::timeline(&mut conn, &merchant, &rma_identifier, page, shopper).await?;
    budgeted_response(&head, &page)
}

impl Listing {
    /// Rejects other filters of a shopper than a proven order: they would reveal whether, for example, an
    /// e-mail address is the buyer's.
    fn check_filters_of(&self, shopper: &ProvenOrders) -> Result<(), Problem> {
        match &self.order_identifier {
            Some(order) if !self.has_filters_of_staff() => {
                shopper.require(order)?;
                Ok(())
            }
            _ => Err(Error::Malformed("shoppers must filter by order_identifier only").into()),
        }
    }

    fn has_filters_of_staff(&self) -> bool {
        let texts = [
            &self.rma_identifier,
            &self.rma_identifier_prefix,
            &self.email,
            &self.tracking_number,
            &self.return_reason,
            &self.sku,
        ];
        texts.into_iter().any(Option::is_some)
            || self.times().into_iter().any(|time| time.is_some())
            || [self.min_amount_cents, self.max_amount_cents].into_iter().any(|it| it.is_some())
            || self.merchant.is_some()
            || self.status.is_some()
            || self.work_list.is_some()
            || self.overdue.is_some()
            || self.return_method.is_some()
            || self.resolution.is_some()
            || self.message_state.is_some()
            || self.format.is_some()
    }

    fn times(&self) -> [Option<DateTime<Utc>>; 4] {
        [self.from, self.to, self.updated_from, self.updated_to]
    }

    fn parse(self) -> Result<Search, Problem> {
        if self.times().into_iter().flatten().any(|time| !is_plausible(time)) {
            return Err(Error::Malformed("times must lie in the years 1 to 9999").into());
        }
        let identifiers = [
            &self.rma_identifier,
            &self.rma_identifier_prefix,
            &self.order_identifier,
            &self.tracking_number,
        ];
        if self.updated_from.is_some() && identifiers.into_iter().any(Option::is_some) {
            let text = "updated_from does not come with an identifier or a tracking number";
            return Err(Error::Malformed(text).into());
        }
        let read_after = if self.updated_from.is_some() { read_change_cursor } else { read_cursor };
        let is_short = |prefix: &String| prefix.chars().count() < MIN_PREFIX_CHARS;
        if self.rma_identifier_prefix.as_ref().is_some_and(is_short) {
            return Err(
                Error::Malformed("rma_identifier_prefix must have 8 characters or more").into()
            );
        }
        Ok(Search {
            merchant: self.merchant,
            rma_identifier: self.rma_identifier,
            rma_identifier_prefix: self.rma_identifier_prefix,
            order_identifier: self.order_identifier,
            status: self.status,
            work_list: self.work_list,
            is_overdue: self.overdue.unwrap_or_default(),
            email: self.email.map(|email| email.to_lowercase()),
            tracking_number: self.tracking_number,
            return_method: self.return_method,
            resolution: self.resolution,
            return_reason: self.return_reason,
            sku: self.sku,
            min_amount_cents: self.min_amount_cents,
            max_amount_cents: self.max_amount_cents,
            message_state: self.message_state,
            from: self.from,
            to: self.to,
            updated_from: self.updated_from,
            updated_to: self.updated_to,
            order: self.order,
            after: self.after.as_deref().map(read_after).transpose()?,
        })
    }
}
