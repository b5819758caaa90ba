//! Forms that may have to be sent again. The page about the failure keeps the fields.

use actix_web::{
    HttpMessage as _, HttpRequest, HttpResponse,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::StatusCode,
    middleware::Next,
    web::Bytes,
};
use pages::api::Service;
use url::form_urlencoded;

use crate::error::PageError;

/// A form with its fields, and the reason why it may have to be sent again.
#[derive(Debug)]
pub(crate) struct KeptForm {
    pub(crate) problem: Problem,
    pub(crate) action: String,
    pub(crate) fields: Vec<(String, String)>,
}

/// The reason why a form may have to be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The session ended while the form was filled in.
    SessionEnded,
    /// The form was not passed on, because auth does not respond.
    NotDone(Service),
    /// The service did not respond to the change, so it may have made it.
    Unknown(Service),
    TooManyRequests,
}

impl Problem {
    /// The problem of a form that was read. A service did not respond as it should to a change or to a
    /// request before it, so nobody knows which.
    fn of(error: &PageError) -> Option<Self> {
        match error {
            PageError::SignedOut { .. } => Some(Self::SessionEnded),
            PageError::Unavailable(service) => Some(Self::Unknown(*service)),
            PageError::TooManyRequests => Some(Self::TooManyRequests),
            _ => None,
        }
    }

    /// Title and explanation.
    pub(crate) fn text(self) -> (&'static str, String) {
        match self {
            Self::SessionEnded => (
                "Your session ended",
                "Nothing was changed. Sign in again in a new tab, come back to this page and send the \
                 form again. Passwords and codes have to be typed again."
                    .to_owned(),
            ),
            Self::NotDone(service) => (
                "A service does not respond",
                format!(
                    "The service {service} is not available now. Nothing was changed. Send the form \
                     again in a moment."
                ),
            ),
            Self::Unknown(service) => (
                "It is not known whether this was done",
                format!(
                    "The service {service} did not respond. Look in a new tab whether the change was \
                     made before you send the form again. Passwords and codes have to be typed again."
                ),
            ),
            Self::TooManyRequests => (
                "Too many requests",
                "Wait a minute and send the form again. Passwords and codes have to be typed again."
                    .to_owned(),
            ),
        }
    }

    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::SessionEnded => StatusCode::UNAUTHORIZED,
            Self::NotDone(_) | Self::Unknown(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// A form as the browser sent it.
#[derive(Clone)]
struct SentForm {
    action: String,
    body: Bytes,
}

impl SentForm {
    fn keep(&self, problem: Problem) -> PageError {
        let (action, fields) = (self.action.clone(), repeatable_fields(&self.body));
        PageError::Form(KeptForm { problem, action, fields })
    }
}

/// The failure of a form whose person could not be identified. Nothing was changed.
pub(crate) fn not_identified(request: &HttpRequest, body: Bytes, error: PageError) -> PageError {
    let sent = SentForm { action: request.path().to_owned(), body };
    match Problem::of(&error) {
        Some(Problem::Unknown(service)) => sent.keep(Problem::NotDone(service)),
        Some(problem) => sent.keep(problem),
        None => error,
    }
}

/// Remembers a form, so that [`keep`] can show its fields.
pub(crate) fn remember(request: &HttpRequest, body: Bytes) {
    request.extensions_mut().insert(SentForm { action: request.path().to_owned(), body });
}

/// Middleware that shows the fields of a form whose request failed.
pub(crate) async fn keep(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse, actix_web::Error> {
    let response = next.call(request).await?.map_into_boxed_body();
    let error = response.response().error().and_then(|error| error.as_error::<PageError>());
    let sent = response.request().extensions().get::<SentForm>().cloned();
    match error.and_then(Problem::of).zip(sent) {
        Some((problem, sent)) => {
            let page = HttpResponse::from_error(sent.keep(problem));
            Ok(response.into_response(page))
        }
        None => Ok(response),
    }
}

/// The fields of a form, without passwords and codes.
fn repeatable_fields(body: &[u8]) -> Vec<(String, String)> {
    const SECRETS: [&str; 11] = [
        "password",
        "password_again",
        "current_password",
        "new_password",
        "code",
        "secret",
        // The credentials and headers of an endpoint.
        "basic_password",
        "bearer_token",
        "api_key",
        "client_secret",
        "headers",
    ];
    form_urlencoded::parse(body)
        .filter(|(name, _)| !SECRETS.contains(&name.as_ref()))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use actix_web::{
        App,
        http::Method,
        middleware::from_fn,
        test::{TestRequest, call_service, init_service, read_body},
        web,
    };

    use super::*;

    /// The status and the page of a form whose handler fails.
    async fn page(method: Method, fail: fn() -> PageError) -> (StatusCode, String) {
        let handler = move |request: HttpRequest, body: Bytes| async move {
            if request.method() == Method::POST {
                remember(&request, body);
            }
            Err::<HttpResponse, _>(fail())
        };
        let app = App::new().wrap(from_fn(keep)).default_service(web::to(handler));
        let app = init_service(app).await;
        let form = "name=Acme%20%26%20Co&password=battery";
        let request = TestRequest::with_uri("/merchants/acme").method(method).set_payload(form);
        let response = call_service(&app, request.to_request()).await;
        let status = response.status();
        (status, String::from_utf8(read_body(response).await.to_vec()).unwrap())
    }

    #[actix_web::test]
    async fn a_service_that_does_not_respond_to_a_form_leaves_it_open() {
        let fail = || PageError::Unavailable(Service::Auth);
        let (status, text) = page(Method::POST, fail).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(text.contains("It is not known whether this was done"), "{text}");
        assert!(!text.contains("Nothing was changed"), "{text}");
        assert!(text.contains(r#"action="/merchants/acme""#) && text.contains("Acme"), "{text}");
        assert!(!text.contains("battery") && !text.contains("password"), "{text}");
        let (_, text) = page(Method::GET, fail).await;
        assert!(text.contains("Try again in a moment") && !text.contains("<form"), "{text}");
    }

    #[actix_web::test]
    async fn a_rejected_token_or_a_limit_keeps_the_fields() {
        let cases: [(fn() -> PageError, _, _); 2] = [
            (|| PageError::TooManyRequests, StatusCode::TOO_MANY_REQUESTS, "Wait a minute"),
            (
                || PageError::SignedOut { next: "/".to_owned() },
                StatusCode::UNAUTHORIZED,
                "Your session ended",
            ),
        ];
        for (fail, status, words) in cases {
            let (shown, text) = page(Method::POST, fail).await;
            assert_eq!(shown, status);
            assert!(text.contains(words) && text.contains("Acme"), "{text}");
        }
        let (status, _) = page(Method::POST, || PageError::NotFound).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }

    #[test]
    fn nothing_was_changed_if_the_person_could_not_be_identified() {
        let request = TestRequest::post().uri("/people/new").to_http_request();
        let error = PageError::Unavailable(Service::Auth);
        let error = not_identified(&request, Bytes::from_static(b"name=Ada"), error);
        let PageError::Form(kept) = error else { panic!("{error:?}") };
        assert_eq!(kept.problem, Problem::NotDone(Service::Auth));
        assert_eq!((kept.action.as_str(), kept.fields.len()), ("/people/new", 1));
    }
}
