//! The label of a parcel as a file.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use actix_web::{HttpResponse, get, web};
use pages::api::{ApiFile, Service};
use pages::path;
use uuid::Uuid;

use crate::error::PageError;
use crate::visit::Proven;

/// The types of labels. A browser must not show anything else that a label provider sent.
const TYPES: [&str; 2] = ["application/pdf", "image/png"];

#[get("/{merchant}/returns/{rma}/labels/{id}")]
pub(super) async fn show_label(
    Proven(visit): Proven,
    path: web::Path<(String, String, Uuid)>,
) -> Result<HttpResponse, PageError> {
    let (_, _, id) = path.into_inner();
    let path = path!("v1", "label_requests", id.to_string(), "document");
    let file = visit.api.get_file(Service::RmaEngine, visit.merchant(), &path).await?;
    Ok(response(file))
}

fn response(ApiFile { content_type, disposition, bytes }: ApiFile) -> HttpResponse {
    let own_type = TYPES.into_iter().find(|known| *known == content_type);
    let is_attachment = disposition.starts_with("attachment");
    let disposition = if is_attachment { &*disposition } else { "attachment" };
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, own_type.unwrap_or("application/octet-stream")))
        .insert_header((CONTENT_DISPOSITION, disposition))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(bytes)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderName;

    use super::*;

    #[test]
    fn a_label_is_always_saved() {
        let headers = |content_type: &str, disposition: &str| {
            let file = ApiFile {
                content_type: content_type.to_owned(),
                disposition: disposition.to_owned(),
                bytes: Vec::new(),
            };
            let response = response(file);
            let header = |name: HeaderName| {
                response.headers().get(name).unwrap().to_str().unwrap().to_owned()
            };
            [header(CONTENT_TYPE), header(CONTENT_DISPOSITION), header(CACHE_CONTROL)]
        };
        let named = "attachment; filename=\"RMA-1-1.pdf\"";
        assert_eq!(headers("application/pdf", named), ["application/pdf", named, "no-store"]);
        let plain = ["application/octet-stream", "attachment", "no-store"];
        assert_eq!(headers("text/html", "inline"), plain);
    }
}
