//! Exports a list of returns: passes the file of the service on as it arrives.

use actix_web::{HttpRequest, HttpResponse, get, http::header, web};
use futures_util::StreamExt as _;
use pages::{api::Service, form::Fields};
use platform::http::ResponseProgress;

use super::list::{FORMATS, LIST, request_of};
use crate::{
    PageError, PageResult, SignedIn,
    notice::redirect,
    record_list::{download, merchant_filter},
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(export_returns);
}

#[get("/returns/export")]
async fn export_returns(
    signed_in: SignedIn,
    query: web::Query<Fields>,
    head: HttpRequest,
) -> PageResult {
    let filter = LIST.filter(&signed_in, &query);
    let merchant = merchant_filter(&signed_in, filter.value("merchant"))?;
    // The list says which value is wrong.
    if !filter.is_valid() {
        return Ok(redirect(&filter.url()));
    }
    let known = FORMATS.into_iter().find(|(_, format, _)| *format == query.text("format"));
    let (_, format, media_type) = known.ok_or(PageError::BadForm)?;
    let conditions = filter.request();
    let conditions = conditions.iter().map(|(name, value)| (*name, value.as_str()));
    let sent = [("order", filter.order().value()), ("format", format)];
    let of_tab = request_of(filter.value("list"));
    let asked: Vec<_> = conditions.chain(of_tab).chain(sent).collect();
    let file = download(&signed_in, Service::RmaEngine, merchant, "v1/returns", &asked).await?;
    let progress = ResponseProgress::of(&head);
    let parts = file.bytes_stream().inspect(move |_| progress.made());
    let name = format!("returns-{}.{format}", signed_in.now.format("%Y-%m-%d"));
    Ok(HttpResponse::Ok()
        .content_type(media_type)
        .insert_header((header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")))
        .streaming(parts))
}

#[cfg(test)]
mod tests {
    use actix_web::http::StatusCode;

    use super::*;
    use crate::fixtures;

    /// A service whose file is the query of the request.
    fn engine(services: &mut web::ServiceConfig) {
        let export =
            async |request: HttpRequest| HttpResponse::Ok().body(request.query_string().to_owned());
        services.route("/v1/returns", web::get().to(export));
    }

    async fn get(path: &str) -> (StatusCode, String) {
        fixtures::get_page(fixtures::app_with_services(engine), routes, path).await
    }

    #[actix_web::test]
    async fn an_export_has_the_conditions_of_the_list() {
        let query = "list=to_refund&sku=BOOT&min=5&columns=sku&order=oldest&after=x&format=csv";
        let (status, sent) = get(&format!("/returns/export?{query}")).await;
        let expected = "sku=BOOT&min_amount_cents=500&work_list=to_refund&order=oldest&format=csv";
        assert_eq!((status, sent.as_str()), (StatusCode::OK, expected));
        assert_eq!(get("/returns/export?format=xml").await.0, StatusCode::BAD_REQUEST);
        assert_eq!(get("/returns/export?format=csv&min=x").await.0, StatusCode::SEE_OTHER);
    }
}
