//! `/v1/warehouse_records`: searches for ASNs, shipments and drop shipments.

use actix_web::{HttpResponse, get, web};
use domain::access::MerchantId;
use platform::Problem;
use platform::http::{PageLimit, Query};
use platform::identity::Caller;
use serde::Deserialize;

use super::listed;
use crate::App;
use crate::error::Error;
use crate::record_keys::Key;
use crate::records::{self, RecordPage};

const ONE_KEY: &str = "give one of asn_number, tracking_number and order_identifier";

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordQuery {
    /// Only records of this merchant
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    /// The number of an inbound ASN or an outbound shipment
    asn_number: Option<String>,
    /// A tracking number of an ASN, a receipt, a shipment or a drop shipment
    tracking_number: Option<String>,
    /// The identifier of an order or an RMA: a reference or shipment identifier, or the order of a drop
    /// shipment
    order_identifier: Option<String>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

/// Find records
///
/// Finds inbound ASNs, outbound shipments and drop shipments by exactly one of `asn_number`,
/// `tracking_number` and `order_identifier`. The numbers of a receipt find its ASN. A token of a merchant
/// finds the merchant's records. A token without a merchant and with the scope `read` finds the records of
/// every merchant, or of the one in `merchant` or `X-Service-Id`.
#[utoipa::path(
    tag = "records",
    security(("bearer" = ["warehouse"]), ("bearer" = ["orders"]), ("bearer" = ["read"])),
    params(
        RecordQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, body = RecordPage))
)]
#[get("/v1/warehouse_records")]
pub(crate) async fn find_records(
    app: web::Data<App>,
    caller: Caller,
    query: Query<RecordQuery>,
) -> Result<HttpResponse, Problem> {
    let query = query.into_inner();
    let merchant = listed(&app, &caller, query.merchant.as_ref())?;
    let after = query.after.as_deref().map(records::read_cursor).transpose()?.unwrap_or_default();
    let key = match (query.asn_number, query.tracking_number, query.order_identifier) {
        (Some(number), None, None) => Key::AsnNumber(number),
        (None, Some(number), None) => Key::TrackingNumber(number),
        (None, None, Some(identifier)) => Key::OrderIdentifier(identifier),
        _ => return Err(Error::Query(ONE_KEY).into()),
    };
    let found = records::find(&app, merchant.as_ref(), &key, &after, query.limit).await?;
    Ok(HttpResponse::Ok().json(found))
}
