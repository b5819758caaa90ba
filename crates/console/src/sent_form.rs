//! Shows the fields of a form whose request failed, so that it can be sent again.

use actix_web::{
    HttpMessage as _, HttpRequest, HttpResponse,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    middleware::Next,
    web::Bytes,
};
use url::form_urlencoded;

use crate::{
    PageError,
    failed_form::{FailedForm, Problem},
};

/// A form of a person who is not signed in.
pub(crate) type Form<T> = pages::form::Form<T, PageError>;

/// A form as the browser sent it.
#[derive(Clone)]
struct SentForm {
    action: String,
    body: Bytes,
}

impl SentForm {
    fn failed(&self, problem: Problem) -> PageError {
        let action = self.action.clone();
        let fields = repeatable_fields(&self.body);
        PageError::Form(FailedForm { problem, action, fields })
    }
}

/// The problem of a form that was read. A service did not respond as it should to a change or to a
/// request before it, so it is not known which.
fn problem_of(error: &PageError) -> Option<Problem> {
    match error {
        PageError::SignedOut { .. } => Some(Problem::SessionEnded),
        PageError::Unavailable(service) => Some(Problem::Unknown(*service)),
        PageError::TooManyRequests => Some(Problem::TooManyRequests),
        _ => None,
    }
}

/// The failure of a form whose person could not be identified. Nothing was changed.
pub(crate) fn not_identified(request: &HttpRequest, body: Bytes, error: PageError) -> PageError {
    let sent = SentForm { action: request.path().to_owned(), body };
    match problem_of(&error) {
        Some(Problem::Unknown(service)) => sent.failed(Problem::NotDone(service)),
        Some(problem) => sent.failed(problem),
        None => error,
    }
}

/// Stores a form in the request, so that [`show_failed_form`] can show its fields.
pub(crate) fn store(request: &HttpRequest, body: Bytes) {
    request.extensions_mut().insert(SentForm { action: request.path().to_owned(), body });
}

/// Middleware that shows the fields of a form whose request failed.
pub(crate) async fn show_failed_form(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse, actix_web::Error> {
    let response = next.call(request).await?.map_into_boxed_body();
    let error = response.response().error().and_then(|error| error.as_error::<PageError>());
    let sent = response.request().extensions().get::<SentForm>().cloned();
    match error.and_then(problem_of).zip(sent) {
        Some((problem, sent)) => {
            let page = HttpResponse::from_error(sent.failed(problem));
            Ok(response.into_response(page))
        }
        None => Ok(response),
    }
}

/// The fields of a form, without passwords and codes.
fn repeatable_fields(body: &[u8]) -> Vec<(String, String)> {
    const SECRETS: [&str; 16] = [
        "password",
        "password_again",
        "current_password",
        "new_password",
        "code",
        "new_code",
        "password_code",
        "recovery_code",
        // The credentials and headers of an endpoint.
        "basic_password",
        "bearer_token",
        "api_key",
        "client_secret",
        "private_key",
        "secret_access_key",
        "session_token",
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
        http::{Method, StatusCode},
        middleware::from_fn,
        test::{TestRequest, call_service, init_service, read_body},
        web,
    };

    use pages::api::Service;

    use super::*;

    /// The status and the page of a form whose handler fails.
    async fn page(method: Method, fail: fn() -> PageError) -> (StatusCode, String) {
        let handler = move |request: HttpRequest, body: Bytes| async move {
            if request.method() == Method::POST {
                store(&request, body);
            }
            Err::<HttpResponse, _>(fail())
        };
        let app = App::new().wrap(from_fn(show_failed_form)).default_service(web::to(handler));
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

    /// The names of inputs in the code of forms: each begins with `start`, and its arguments have one of `parts`.
    fn inputs(start: &str, parts: &[&str]) -> Vec<&'static str> {
        let forms = [
            include_str!("account.rs"),
            include_str!("account/authenticator.rs"),
            include_str!("merchant/endpoint_form.rs"),
        ];
        let name = |input: &'static str| {
            let arguments = input.split(')').next()?;
            let is_meant = parts.iter().any(|part| arguments.contains(part));
            input.trim_start().strip_prefix('"')?.split('"').next().filter(|_| is_meant)
        };
        forms.iter().flat_map(|form| form.split(start).skip(1)).filter_map(name).collect()
    }

    #[test]
    fn no_input_for_a_secret_is_shown_again() {
        let names = inputs("Input::new(", &["Kind::Secret", "Kind::Code"]);
        let names = [names, inputs(" secret(", &[""])].concat();
        assert!(names.len() > 12, "{names:?}");
        for name in names {
            let body = format!("{name}=x&note=y");
            assert_eq!(repeatable_fields(body.as_bytes()).len(), 1, "{name}");
        }
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
