//! `/v1/guarantees` and `/v1/returns/{rma}/waive`: exchanged units that have not come back.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{get, post, web};
use api::returns::GuaranteeReport;
use chrono::{Datelike as _, Months, NaiveDate};
use domain::access::{MerchantId, Scope};
use domain::json::{Object, array, object, read_fields, text};
use domain::returns::{MAX_UNITS, UnitId};
use platform::Problem;
use platform::http::{ErrorBody, Json, Query, Sequential};
use platform::identity::Caller;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{listed_merchant, merchant_of, reject_portal};
use crate::App;
use crate::error::Error;
use crate::returns::guarantees;
use crate::shoppers::view::ReturnView;

/// The months of a report without others, the present one included.
const MONTHS: u32 = 12;
const MAX_MONTHS: i32 = 120;

/// Units to waive; all units whose guarantee is open or due without `units`.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WaiverRequest)]
pub(crate) struct WaiverBody {
    #[schema(min_items = 1, max_items = 1000)]
    units: Option<Vec<UnitId>>,
    /// The reason for the record.
    #[schema(min_length = 1, max_length = 1000)]
    note: String,
}

/// Waive exchanged units
///
/// Does without exchanged units that have not come back, and without their amounts: they are not reported as unreturned,
/// and those that were reported are not due any more. The merchant gets a message. The timeline records the person or
/// client and the note. Possible for the merchant and for operators, not for portals.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"])),
    params(
        ("rma_identifier" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    request_body(content = WaiverBody, example = json!({ "units": [{ "order_identifier": "A-1001", "order_line_item_identifier": "1", "unit": 1 }], "note": "The carrier lost the parcel" })),
    responses(
        (status = 200, description = "The return; waiving again changes nothing", body = ReturnView),
        (status = 409, description = "No exchange order was accepted for a unit", body = ErrorBody),
    ),
)]
#[post("/v1/returns/{rma_identifier}/waive")]
pub(crate) async fn waive_units(
    app: web::Data<App>,
    rma_identifier: web::Path<String>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<web::Json<ReturnView>, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    reject_portal(&caller)?;
    let WaiverBody { units, note } = body.read(object(read_waiver)).await?;
    let wanted = (units.as_deref(), note.as_str());
    let waived =
        guarantees::waive(&app, &merchant, caller.actor(), &rma_identifier, wanted).await?;
    Ok(web::Json(ReturnView::new(waived, Some(&merchant), None)))
}

pub(crate) fn read_waiver(body: &Object<'_>) -> Option<WaiverBody> {
    read_fields!(body => WaiverBody {
        units: body.optional("units", array(1..=MAX_UNITS, object(UnitId::read))),
        note: body.required("note", text(1..=1_000)),
    })
}

/// The months of a report.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportQuery {
    /// The merchant; the caller's own without it.
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    /// The first month, for example `2026-01`; eleven months before the last one without it
    from: Option<String>,
    /// The last month; the present one without it
    to: Option<String>,
}

/// Report guarantees by month
///
/// The exchanged units by the month (UTC) in which the merchant accepted the exchange order, and by currency: those that
/// may still come back in time (`open`), came back (`met`), did not come back in time (`due`), or were waived. Amounts
/// are those that were paid for the units. A token without a merchant names one in `merchant` or `X-Service-Id`.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"]), ("bearer" = ["read"])),
    params(
        ReportQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, description = "The months in which there are guarantees, newest first", body = GuaranteeReport)),
)]
#[get("/v1/guarantees")]
pub(crate) async fn report_guarantees(
    app: web::Data<App>,
    caller: Caller,
    query: Query<ReportQuery>,
) -> Result<web::Json<GuaranteeReport>, Problem> {
    let ReportQuery { merchant, from, to } = query.into_inner();
    let merchant = listed_merchant(&app, &caller, merchant.as_ref())?
        .ok_or(Error::Malformed("name the merchant of the report in merchant or X-Service-Id"))?;
    let to = month(to.as_deref())?.unwrap_or_else(|| first_day(app.clock.now().date_naive()));
    let from = month(from.as_deref())?;
    let from = from.unwrap_or_else(|| to.checked_sub_months(Months::new(MONTHS - 1)).unwrap_or(to));
    let months =
        (to.year() - from.year()) * 12 + to.month0().cast_signed() - from.month0().cast_signed();
    if !(0..MAX_MONTHS).contains(&months) {
        return Err(Error::Malformed(
            "to must be at most 120 months after from, and not before it",
        )
        .into());
    }
    let mut conn = app.pool.reader(Some(merchant.as_str())).await?;
    Ok(web::Json(guarantees::report(&mut conn, &merchant, (from, to)).await?))
}

fn first_day(day: NaiveDate) -> NaiveDate {
    day.with_day(1).unwrap_or(day)
}

/// The first day of a month like `2026-01`.
fn month(text: Option<&str>) -> Result<Option<NaiveDate>, Error> {
    let Some(text) = text else { return Ok(None) };
    let day = NaiveDate::parse_from_str(&format!("{text}-01"), "%Y-%m-%d").ok();
    // Years have four digits.
    let day = day.filter(|_| text.len() == 7);
    day.map(Some).ok_or(Error::Malformed("from and to must be months like 2026-01"))
}
