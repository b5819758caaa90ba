//! The label of a parcel as a file.

use actix_web::{HttpResponse, get, web};
use pages::api::Service;
use pages::{file, path};
use uuid::Uuid;

use crate::error::PageError;
use crate::visit::Proven;

#[get("/{merchant}/returns/{rma}/labels/{id}")]
pub(super) async fn show_label(
    Proven(visit): Proven,
    path: web::Path<(String, String, Uuid)>,
) -> Result<HttpResponse, PageError> {
    let (_, _, id) = path.into_inner();
    let path = path!("v1", "label_requests", id.to_string(), "document");
    let label = visit.api.get_file(Service::RmaEngine, visit.merchant(), &path).await?;
    Ok(file::save(label))
}
