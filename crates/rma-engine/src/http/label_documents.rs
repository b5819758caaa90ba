//! `/v1/label_requests/{id}/document`: labels that are documents.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION};
use actix_web::{HttpResponse, get, web};
use platform::Problem;
use platform::http::ErrorBody;
use platform::shopper_proof::Requester;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{READERS, merchant_or_shopper};
use crate::App;
use crate::label_documents;

/// A label as a file.
#[expect(dead_code, reason = "only describes the response in the OpenAPI document")]
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
pub(crate) struct LabelDocument(Vec<u8>);

/// Show a label
///
/// The label of a parcel that the provider sent as a document: a PDF or PNG document, or ZPL for a label printer, which has
/// no media type of its own. Other labels have a `label_url`. A shopper gets the labels of a return with a unit of a
/// proven order. A label is kept until it is canceled, or for 90 days.
#[utoipa::path(
    tag = "labels",
    security(("bearer" = ["returns"]), ("bearer" = ["read"]), ("bearer" = ["shopper"])),
    params(
        ("id" = Uuid, Path),
        ("X-Service-Id" = Option<String>, Header),
        ("X-Shopper-Proof" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The label, to save as a file", content(
            (LabelDocument = "application/pdf"),
            (LabelDocument = "image/png"),
            (LabelDocument = "application/octet-stream"),
        )),
        (status = 404, description = "No such label request of this merchant, or it has no document any more", body = ErrorBody),
    ),
)]
#[get("/v1/label_requests/{id}/document")]
pub(crate) async fn show_label_document(
    app: web::Data<App>,
    requester: Requester,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, Problem> {
    let (merchant, shopper) = merchant_or_shopper(&app, &requester, &READERS)?;
    let mut conn = app.pool.get().await?;
    let id = id.into_inner();
    let file = label_documents::load(&mut conn, &app.sealer, &merchant, id, shopper).await?;
    // Never shown inside a page of ours, whatever it contains.
    let disposition = format!("attachment; filename=\"{}\"", file.name);
    Ok(HttpResponse::Ok()
        .content_type(file.format.content_type())
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((CONTENT_DISPOSITION, disposition))
        .body(file.bytes))
}
