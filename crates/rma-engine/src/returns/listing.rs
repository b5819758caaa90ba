//! Pages of returns and of timelines.
//!
//! See docs/decisions/look-up.md.

use api::returns::ListedReturn;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Datelike as _};
use diesel_async::AsyncPgConnection;
use domain::merchant::Merchant;
use merchants::Merchants;
use platform::Timestamp;
use platform::http::{BadCursor, PageLimit};
use platform::shopper_proof::ProvenOrders;
use serde::Serialize;
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::error::Error;
use crate::returns::find;
use crate::shoppers::timeline::{ShopperTimeline, steps};
use crate::shoppers::view::{ReturnView, ShopperReturn, is_visible};
use crate::store::search::{Found, FoundReturn, Place, Search, search};
use crate::store::timeline::{self, TimelineEntry};

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Returns {
    /// Newest first, unless `order` is `oldest`. With `updated_from`, in the order of their last changes.
    returns: Vec<ListedView>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// Value of `after` with which a later request with the same filters finds the returns that changed meanwhile. Only
    /// on the last page of a list with `updated_from`.
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<String>,
}

/// A return in a list as the caller may see it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ListedView {
    Full(Box<ListedReturn>),
    Shopper(Box<ShopperReturn>),
}

impl ListedView {
    pub(crate) fn new(
        found: FoundReturn,
        merchants: &Merchants,
        shopper: Option<&ProvenOrders>,
    ) -> Self {
        let FoundReturn { rma, changed_at, last_message, .. } = found;
        let work_list = rma.work_list();
        let merchant = merchants.get(&rma.merchant);
        match ReturnView::new(rma, merchant.as_deref(), shopper) {
            ReturnView::Full(details) => {
                let listed =
                    ListedReturn { details: *details, work_list, changed_at, last_message };
                Self::Full(Box::new(listed))
            }
            ReturnView::Shopper(view) => Self::Shopper(view),
        }
    }
}

/// A timeline as the caller may see it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum TimelineView {
    Full(Timeline),
    Shopper(ShopperTimeline),
}

/// `anyOf`, because a timeline without entries has both forms.
impl PartialSchema for TimelineView {
    fn schema() -> RefOr<Schema> {
        let either = AnyOfBuilder::new()
            .description(Some("A timeline as the caller may see it."))
            .item(Ref::from_schema_name(Timeline::name()))
            .item(Ref::from_schema_name(ShopperTimeline::name()));
        RefOr::T(Schema::AnyOf(either.build()))
    }
}

impl ToSchema for TimelineView {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Timeline::name().into_owned(), Timeline::schema()));
        Timeline::schemas(schemas);
        schemas.push((ShopperTimeline::name().into_owned(), ShopperTimeline::schema()));
        ShopperTimeline::schemas(schemas);
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Timeline {
    /// Oldest first.
    entries: Vec<TimelineEntry>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A page of returns. A shopper's page may have fewer, because returns of others are left out.
pub(crate) async fn list_returns(
    conn: &mut AsyncPgConnection,
    merchants: &Merchants,
    wanted: &Search,
    limit: PageLimit,
    shopper: Option<&ProvenOrders>,
) -> Result<Returns, Error> {
    let Found { mut returns, is_truncated, scanned_to, horizon } =
        search(conn, wanted, limit.rows()).await?;
    let cursor = if horizon.is_some() { change_cursor } else { cursor };
    let next = limit.next_of(&mut returns, is_truncated, |last| cursor(&last.place));
    let next = next.or(scanned_to.as_ref().map(cursor));
    let is_ended = |horizon: &Timestamp| wanted.updated_to.is_some_and(|to| to <= *horizon);
    let horizon = horizon.filter(|horizon| next.is_none() && !is_ended(horizon));
    let resume = horizon.map(|horizon| cursor(&place_behind(wanted, horizon)));
    returns.retain(|it| shopper.is_none_or(|shopper| is_visible(&it.rma, shopper)));
    let view = |found: FoundReturn| ListedView::new(found, merchants, shopper);
    Ok(Returns { returns: returns.into_iter().map(view).collect(), next, resume })
}

/// The place behind all changes before a time. A page may have been behind it already, because the time can go back when
/// a transaction begins.
fn place_behind(wanted: &Search, horizon: Timestamp) -> Place {
    match &wanted.after {
        Some(after) if after.0 >= horizon => after.clone(),
        _ => (horizon, "0".to_owned()),
    }
}

/// A page of a return's timeline.
pub(crate) async fn timeline(
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    rma_identifier: &str,
    (after, limit): (i64, PageLimit),
    shopper: Option<&ProvenOrders>,
) -> Result<TimelineView, Error> {
    let rma = find(conn, merchant, rma_identifier, shopper).await?;
    let id = &merchant.identifier;
    let name = &rma.rma_identifier;
    let (mut entries, is_truncated) = timeline::page(conn, id, name, after, limit.rows()).await?;
    let next = limit.next_of(&mut entries, is_truncated, |last| last.position.to_string());
    if shopper.is_none() {
        return Ok(TimelineView::Full(Timeline { entries, next }));
    }
    let mut shown = Vec::new();
    for entry in &entries {
        shown.extend(steps(entry, &rma)?);
    }
    Ok(TimelineView::Shopper(ShopperTimeline { entries: shown, next }))
}

/// Whether PostgreSQL can store the time and it is in the range that the API accepts.
pub(crate) fn is_plausible(time: Timestamp) -> bool {
    (1..=9999).contains(&time.year())
}

/// Cursor of a return in the list: creation time in microseconds and identifier.
pub(crate) fn cursor((created_at, rma_identifier): &Place) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {rma_identifier}", created_at.timestamp_micros()))
}

pub(crate) fn read_cursor(text: &str) -> Result<Place, BadCursor> {
    // A cursor is not checked like the rest of the URL, and PostgreSQL cannot store NUL.
    let place = decoded(text).and_then(|text| read_place(&text));
    place.filter(|(_, identifier)| !identifier.contains('\0')).ok_or(BadCursor)
}

/// The first word of the cursor of a change.
const CHANGE: &str = "change ";

/// Cursor of a return in a list of changes: the time of the change in microseconds and its position.
fn change_cursor((at, position): &Place) -> String {
    URL_SAFE_NO_PAD.encode(format!("{CHANGE}{} {position}", at.timestamp_micros()))
}

pub(crate) fn read_change_cursor(text: &str) -> Result<Place, BadCursor> {
    let place = decoded(text).and_then(|text| read_place(text.strip_prefix(CHANGE)?));
    place.filter(|(_, position)| position.parse::<i64>().is_ok()).ok_or(BadCursor)
}

fn decoded(text: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

/// A time in microseconds and a name.
fn read_place(text: &str) -> Option<Place> {
    let (time, name) = text.split_once(' ')?;
    let time = DateTime::from_timestamp_micros(time.parse().ok()?)?;
    is_plausible(time).then(|| (time, name.to_owned()))
}
