//! Files of services that a browser saves.

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};

use crate::api::ApiFile;

/// The types that a file keeps. Nothing else may be shown or run on our pages.
const TYPES: [&str; 2] = ["application/pdf", "image/png"];

/// The response with a file, which is saved and never shown as a page.
pub fn save(ApiFile { content_type, disposition, bytes }: ApiFile) -> HttpResponse {
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
    fn a_file_is_always_saved() {
        let headers = |content_type: &str, disposition: &str| {
            let file = ApiFile {
                content_type: content_type.to_owned(),
                disposition: disposition.to_owned(),
                bytes: Vec::new(),
            };
            let response = save(file);
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
