//! Failures as pages.

use std::fmt;

use actix_web::{
    HttpResponse, ResponseError,
    http::{StatusCode, header},
};
use askama::Template;
use pages::{
    api::{ApiError, ErrorBody, Service},
    assets::{ASSETS, AssetUrls},
    form::FormError,
};
use platform::{Failure as _, http::BodyError};
use url::form_urlencoded;

use crate::{
    cookies::no_session,
    failed_form::{FailedForm, Problem},
};

/// The reason why a page cannot be shown.
#[derive(Debug)]
pub(crate) enum PageError {
    /// There is no session, or it ended. Signing in leads to `next`.
    SignedOut {
        next: String,
    },
    NotFound,
    Denied(String),
    Unavailable(Service),
    TooManyRequests,
    Rejected(String),
    /// A form that may have to be sent again. The page keeps the fields.
    Form(FailedForm),
    BadForm,
    /// The body of a form cannot be read.
    Body(BodyError),
    Internal,
}

pub(crate) type PageResult = Result<HttpResponse, PageError>;

impl From<ApiError> for PageError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Unavailable { service } => Self::Unavailable(service),
            ApiError::Unauthenticated { .. } => Self::SignedOut { next: "/".to_owned() },
            ApiError::Denied(body) => Self::Denied(body.message),
            ApiError::NotFound => Self::NotFound,
            ApiError::Conflict(body) | ApiError::Invalid(body) => Self::Rejected(body.message),
            ApiError::TooManyRequests { .. } => Self::TooManyRequests,
        }
    }
}

impl From<FormError> for PageError {
    fn from(error: FormError) -> Self {
        tracing::info!(%error, "a form cannot be read");
        match error {
            FormError::Body(error) => Self::Body(error),
            FormError::Fields(_) => Self::BadForm,
        }
    }
}

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> Self {
        tracing::error!(%error, "a template cannot be rendered");
        Self::Internal
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().0)
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    page: Bare,
    title: &'a str,
    text: &'a str,
    /// The form to send again.
    repeat: Option<&'a FailedForm>,
}

/// The part of a page context that pages without a signed-in person have.
pub(crate) struct Bare {
    pub(crate) assets: &'static AssetUrls,
}

impl Bare {
    pub(crate) fn new() -> Self {
        Self { assets: &ASSETS }
    }
}

impl PageError {
    /// The form to send again.
    pub(crate) fn repeat(&self) -> Option<&FailedForm> {
        match self {
            Self::Form(kept) => Some(kept),
            _ => None,
        }
    }

    /// Title and explanation.
    pub(crate) fn text(&self) -> (&str, String) {
        match self {
            Self::SignedOut { .. } => ("Please sign in", String::new()),
            Self::NotFound => (
                "This page does not exist",
                "It may have been removed, or you may not have access to it.".to_owned(),
            ),
            Self::Denied(reason) => ("You may not do this", sentence(reason)),
            Self::Unavailable(service) => (
                "A service does not respond",
                format!("The service {service} is not available now. Try again in a moment."),
            ),
            Self::TooManyRequests => {
                ("Too many requests", "Wait a minute and try again.".to_owned())
            }
            Self::Rejected(reason) => ("This was not possible", sentence(reason)),
            Self::Form(kept) => kept.problem.text(),
            Self::BadForm => (
                "This form is out of date",
                "Nothing was changed. Go back, reload the page and try again.".to_owned(),
            ),
            Self::Body(error) => ("This form cannot be read", body_text(error)),
            Self::Internal => ("Something went wrong", "The error was logged.".to_owned()),
        }
    }
}

fn body_text(error: &BodyError) -> String {
    let reason = match error {
        BodyError::Overloaded(_) => "Too many forms arrive now. Try again in a moment.".to_owned(),
        error => sentence(&error.to_string()),
    };
    format!("Nothing was changed. {reason}")
}

/// An error message of a service as a sentence.
pub(crate) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let Some(first) = letters.next() else { return "The service gave no reason.".to_owned() };
    let text: String = first.to_uppercase().chain(letters).collect();
    if text.ends_with('.') { text } else { text + "." }
}

/// The first error of a list or of one of its entries.
pub(crate) fn error_below(body: &ErrorBody, path: &str) -> Option<String> {
    let error = body.errors.iter().find(|error| error.field.starts_with(path))?;
    body.field(&error.field).map(|text| sentence(&text))
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::SignedOut { .. } => StatusCode::SEE_OTHER,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Denied(_) => StatusCode::FORBIDDEN,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Rejected(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Form(kept) => kept.problem.status(),
            Self::BadForm => StatusCode::BAD_REQUEST,
            Self::Body(error) => error.kind().status(),
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        if let Self::SignedOut { next } = self {
            let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
            return response
                .cookie(no_session())
                .insert_header((header::LOCATION, format!("/sign-in?next={next}")))
                .finish();
        }
        let (title, text) = self.text();
        let page = ErrorPage { page: Bare::new(), title, text: &text, repeat: self.repeat() };
        response
            .content_type("text/html; charset=utf-8")
            .body(page.render().unwrap_or_else(|_| title.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_sign_in_removes_an_ended_session() {
        let response = PageError::SignedOut { next: "/audit".to_owned() }.error_response();
        let text = |name| response.headers().get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(text(header::LOCATION), "/sign-in?next=%2Faudit");
        let cookie = text(header::SET_COOKIE);
        assert!(cookie.starts_with("__Host-session=;") && cookie.contains("Max-Age=0"), "{cookie}");
    }

    #[test]
    fn a_page_that_only_reads_claims_nothing() {
        let (_, text) = PageError::Unavailable(Service::Exchange).text();
        assert!(!text.contains("changed"), "{text}");
    }
}
