//! The menu on pages about failures.

use actix_web::{
    HttpMessage as _, HttpResponse, ResponseError as _,
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

/// A path that does not exist. The session is looked up for the menu of the page.
pub(crate) async fn not_found(_: Option<SignedIn>) -> PageResult {
    Err(PageError::NotFound)
}

/// Middleware that adds the menu to the pages about failures, if the person is known.
pub(crate) async fn show_menu(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse, actix_web::Error> {
    let response = next.call(request).await?.map_into_boxed_body();
    let signed_in = response.request().extensions().get::<SignedIn>().cloned();
    let page = signed_in.map(|signed_in| signed_in.page(Section::Error));
    let error = response.response().error().and_then(|error| error.as_error::<PageError>());
    let shown = match (page, error) {
        (Some(page), Some(error)) => page_with_menu(error, page),
        _ => None,
    };
    Ok(match shown {
        Some(page) => response.into_response(page),
        None => response,
    })
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
    use serde_json::json;

    use super::*;
    use crate::fixtures;

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
