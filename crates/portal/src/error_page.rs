//! Failures as pages, in the shopper's language and the merchant's colours.

use actix_web::{
    HttpMessage as _, HttpRequest, HttpResponse, ResponseError as _,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::header,
    middleware::Next,
    web,
};
use askama::Template;
use url::form_urlencoded;

use crate::{
    App,
    error::{PageError, minutes},
    page::{Page, html_with, redirect},
    visit::Visit,
};

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    page: Page,
    title: String,
    text: String,
}

/// Middleware that turns a [`PageError`] into a page.
pub(crate) async fn render(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse, actix_web::Error> {
    let response = next.call(request).await?.map_into_boxed_body();
    let error = response.response().error().and_then(|error| error.as_error::<PageError>());
    let Some(error) = error.cloned() else { return Ok(response) };
    if error == PageError::TokenRejected
        && let Some(app) = response.request().app_data::<web::Data<App>>()
    {
        app.access.invalidate().await;
    }
    let page = page(response.request(), &error);
    Ok(response.into_response(page))
}

fn page(request: &HttpRequest, error: &PageError) -> HttpResponse {
    let visit = request.extensions().get::<Visit>().cloned();
    if let (PageError::ProofExpired, Some(visit)) = (error, &visit) {
        return redirect(&find_again(visit));
    }
    let page = match &visit {
        Some(visit) => Page::new(visit, None),
        None => Page::without_merchant(request),
    };
    let waiting = match error {
        PageError::TooManyRequests { retry_after } => minutes(*retry_after),
        _ => 0,
    };
    let (title, text) = (format!("{error}-title"), format!("{error}-text"));
    let template =
        ErrorPage { title: page.t(&title), text: page.t1(&text, "minutes", waiting), page };
    let response = html_with(error.status_code(), &template.page, &template);
    let mut response = response.unwrap_or_else(|_| HttpResponse::new(error.status_code()));
    if waiting > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, (waiting * 60).into());
    }
    response
}

/// The find page, from which the shopper comes back to this page with the same choices.
fn find_again(visit: &Visit) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("again", "1")
        .append_pair("next", &visit.target)
        .finish();
    format!("{}?{query}", visit.url(""))
}

pub(crate) async fn not_found(_: HttpRequest) -> Result<HttpResponse, PageError> {
    Err(PageError::NotFound)
}

/// A path below a merchant's portal, whose error page has the shop's header.
pub(crate) async fn not_found_at(_: Visit) -> Result<HttpResponse, PageError> {
    Err(PageError::NotFound)
}

#[cfg(test)]
mod tests {
    use actix_web::{http::StatusCode, test::TestRequest};

    use super::*;

    #[test]
    fn every_error_has_a_title_and_a_text() {
        for error in [
            PageError::NotFound,
            PageError::Unavailable,
            PageError::TooManyRequests { retry_after: None },
            PageError::ProofExpired,
            PageError::Changed,
            PageError::BadForm,
            PageError::BadBody(StatusCode::PAYLOAD_TOO_LARGE),
            PageError::BadBody(StatusCode::UNSUPPORTED_MEDIA_TYPE),
            PageError::BadBody(StatusCode::BAD_REQUEST),
            PageError::TooSlow,
            PageError::Internal,
        ] {
            let page = Page::without_merchant(&TestRequest::get().to_http_request());
            for id in [format!("{error}-title"), format!("{error}-text")] {
                assert_ne!(page.t1(&id, "minutes", 1_u32), id);
            }
        }
    }
}
