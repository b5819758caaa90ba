//! `POST /v1/returns/{rma_identifier}/receipts`: receiving at our warehouse.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, post, web};
use domain::access::Scope;
use domain::json::{Digest, Document, Object, object};
use domain::returns::{Receipt, Rma};
use platform::Problem;
use platform::http::{ErrorBody, Json, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::Caller;
use utoipa::ToSchema;

use super::{idempotency_key, merchant_of};
use crate::App;
use crate::returns::receiving::{self, ReceivingRequest};

/// Findings of a receiving request.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct NewReceipt {
    #[schema(min_items = 1, max_items = 1000)]
    #[schema(nullable = false)]
    findings: Option<Vec<NewFinding>>,
    /// Closes receiving after the findings. Units that have not arrived count as not received.
    #[schema(nullable = false)]
    close: Option<bool>,
}

/// One finding of the warehouse. All findings but `over` name a unit.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct NewFinding {
    finding: FindingKind,
    /// The order of the unit.
    #[schema(nullable = false, min_length = 1, max_length = 255)]
    order_identifier: Option<String>,
    #[schema(nullable = false, min_length = 1, max_length = 255)]
    order_line_item_identifier: Option<String>,
    #[schema(nullable = false, minimum = 1, maximum = 1000)]
    unit: Option<i32>,
    /// With `over`: the number of surplus units.
    #[schema(nullable = false, minimum = 1, maximum = 1000)]
    quantity: Option<i64>,
    /// With `over`: the SKU of the surplus units.
    #[schema(nullable = false, min_length = 1, max_length = 255)]
    sku: Option<String>,
    /// With `wrong`: the SKU of the item that arrived.
    #[schema(nullable = false, min_length = 1, max_length = 255)]
    found_sku: Option<String>,
    /// With `damaged`, `wrong` and `over`.
    #[schema(nullable = false, max_length = 1000)]
    note: Option<String>,
}

/// `received` and `damaged` units arrived; `short` units are missing from the parcel; `wrong`: another item
/// arrived or the unit is rejected; `over`: more units arrived than the return has; `undo`: an earlier
/// receipt of the unit was a mistake.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) enum FindingKind {
    Received,
    Damaged,
    Short,
    Wrong,
    Over,
    Undo,
}

/// Receive units of a return
///
/// For merchants with managed receiving. Closing a receipt marks the units that have not arrived as not received.
#[utoipa::path(
    tag = "receiving", security(("bearer" = ["warehouse"])),
    request_body(content = NewReceipt, example = json!({ "findings": [{ "finding": "received", "order_identifier": "A-1001", "order_line_item_identifier": "1", "unit": 1 }], "close": true })),
    params(
        ("rma_identifier" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The return", body = Rma),
        (status = 409, description = "We do not receive this return, or receiving is closed", body = ErrorBody),
    ),
)]
#[post("/v1/returns/{rma_identifier}/receipts")]
pub(crate) async fn receive_units(
    app: web::Data<App>,
    head: HttpRequest,
    header: KeyHeader,
    rma_identifier: web::Path<String>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Warehouse)?;
    let read = |document: &Document| (Digest::of(document.value()), document.read(object(read)));
    let (digest, read) = body.read_with(read).await?;
    let key = idempotency_key(&header, head.path(), &merchant, "receipts", digest);
    let (receipt, close) = read?;
    let actor = caller.actor();
    let receiving = ReceivingRequest { receipt, close, key };
    let response = receiving::receive(&app, &merchant, actor, &rma_identifier, &receiving).await?;
    Ok(json_response(StatusCode::OK, response))
}

pub(crate) fn read(body: &Object<'_>) -> Option<(Option<Receipt>, bool)> {
    body.reject_unknown(&["findings", "close"]);
    let close = body.flag("close");
    // Closing needs no findings; anything else does.
    if close != Some(false) && !body.has("findings") {
        return Some((None, close?));
    }
    let receipt = Receipt::read_object(body);
    Some((Some(receipt?), close?))
}
