//! The menu on pages about failures.

use actix_web::{
    FromRequest as _, HttpMessage as _, HttpRequest, HttpResponse, ResponseError as _,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    middleware::Next,
};
use askama::Template;

use crate::{
    Page, PageError, PageResult, Section, SignedIn,
    failed_form::{FailedForm, Problem},
};

/// The page about a failure with the menu and the search, for a person who is signed in.
#[derive(Template)]
#[template(path = "signed_in_error.html")]
struct SignedInErrorPage<'a> {
    page: Page,
    title: &'a str,
    text: &'a str,
    /// The form to send again.
    repeat: Option<&'a FailedForm>,
}

pub(crate) async fn not_found() -> PageResult {
    Err(PageError::NotFound)
}

/// Middleware that adds the menu to the pages about failures for a person who is signed in.
pub(crate) async fn show_menu(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse, actix_web::Error> {
    let response = next.call(request).await?.map_into_boxed_body();
    let error = response.response().error().and_then(|error| error.as_error::<PageError>());
    let Some(error) = error else { return Ok(response) };
    let page = person(response.request(), error).await.map(|it| it.page(Section::Error));
    let shown = page.and_then(|page| page_with_menu(error, page));
    Ok(match shown {
        Some(page) => response.into_response(page),
        None => response,
    })
}

/// The person who sent a request. A path or a query that cannot be read fails before the session is looked up.
async fn person(request: &HttpRequest, error: &PageError) -> Option<SignedIn> {
    let known = request.extensions().get::<SignedIn>().cloned();
    match error {
        PageError::NotFound | PageError::BadForm if known.is_none() => {
            SignedIn::extract(request).await.ok()
        }
        _ => known,
    }
}

/// The response for a person who is signed in; `None` if the failure leads to another page.
fn page_with_menu(error: &PageError, page: Page) -> Option<HttpResponse> {
    if matches!(error, PageError::SignedOut { .. }) {
        return None;
    }
    let (title, text) = error.text();
    let page = SignedInErrorPage { page, title, text: &text, repeat: error.repeat() };
    let mut response = HttpResponse::build(error.status_code());
    Some(response.content_type("text/html; charset=utf-8").body(page.render().ok()?))
}

#[cfg(test)]
mod tests {
    use actix_web::{
        App,
        cookie::Cookie,
        middleware::from_fn,
        test::{TestRequest, call_and_read_body, init_service},
        web,
    };
    use serde_json::json;

    use super::*;
    use crate::{deliveries, delivery, fixtures};

    #[actix_web::test]
    async fn a_path_that_cannot_be_read_leads_to_a_page_with_the_menu() {
        let pages = web::scope("")
            .wrap(from_fn(show_menu))
            .app_data(web::PathConfig::default().error_handler(|_, _| PageError::NotFound.into()))
            .configure(deliveries::routes)
            .configure(delivery::routes)
            .default_service(web::to(not_found));
        let app = web::Data::new(fixtures::app_with_changed_merchant());
        let app = init_service(App::new().app_data(app).service(pages)).await;
        let mistyped = "/deliveries/exchange/mistyped";
        for (path, session) in [(mistyped, true), ("/no/such/page", true), ("/no/such/page", false)]
        {
            let mut request = TestRequest::with_uri(path);
            if session {
                request = request.cookie(Cookie::new("__Host-session", "s"));
            }
            let page = call_and_read_body(&app, request.to_request()).await;
            let page = String::from_utf8_lossy(&page);
            assert!(page.contains("This page does not exist"), "{page}");
            assert_eq!(page.contains(r#"action="/lookup""#), session, "{page}");
        }
    }

    #[test]
    fn the_page_of_a_failure_has_the_menu_of_a_known_person() {
        let signed_in = fixtures::signed_in("support", None, &json!({}));
        let show = |error: PageError| page_with_menu(&error, fixtures::page(&signed_in));
        for error in [PageError::NotFound, PageError::Rejected("no".to_owned())] {
            let response = show(error).unwrap();
            let body = response.into_body().try_into_bytes().unwrap();
            let text = String::from_utf8(body.to_vec()).unwrap();
            for part in [r#"class="brand""#, r#"action="/lookup""#, r#"href="/deliveries""#] {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
        assert!(show(PageError::SignedOut { next: "/".to_owned() }).is_none());
        let bare = PageError::NotFound.error_response().into_body().try_into_bytes().unwrap();
        assert!(String::from_utf8(bare.to_vec()).unwrap().contains(r#"class="brand""#));
    }
}
