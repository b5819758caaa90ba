//! The reasons why a page cannot be shown. `error_page` shows them.

use std::{fmt, time::Duration};

use actix_web::{HttpResponse, ResponseError, http::StatusCode};
use pages::{api::ApiError, form::FormError};
use platform::{ErrorKind, Failure as _};

/// The reason why a page cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageError {
    NotFound,
    /// A service does not respond.
    Unavailable,
    /// A service rejected the portal's token.
    TokenRejected,
    TooManyRequests {
        retry_after: Option<Duration>,
    },
    /// The shopper has to find the order again.
    ProofExpired,
    /// A service rejected the request, because something changed since the page was shown.
    Changed,
    BadForm,
    /// The header `Host` is not a host name.
    BadHost,
    /// The body of a form is too large or has an encoding that is not supported.
    BadBody(StatusCode),
    /// The body of a form did not arrive in time.
    TooSlow,
    Internal,
}

impl From<FormError> for PageError {
    fn from(error: FormError) -> Self {
        tracing::info!(%error, "a form cannot be read");
        match error {
            FormError::Fields(_) => Self::BadForm,
            FormError::Body(error) => match error.kind() {
                ErrorKind::TooSlow => Self::TooSlow,
                ErrorKind::Unavailable => Self::Unavailable,
                ErrorKind::Limited => Self::TooManyRequests { retry_after: error.retry_after() },
                kind => Self::BadBody(kind.status()),
            },
        }
    }
}

impl From<ApiError> for PageError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Unavailable { .. } => Self::Unavailable,
            ApiError::Unauthenticated { .. } => Self::TokenRejected,
            ApiError::Denied(body) if body.code.starts_with("proof_") => Self::ProofExpired,
            ApiError::Denied(_) | ApiError::NotFound => Self::NotFound,
            ApiError::Conflict(body) | ApiError::Invalid(body) => {
                tracing::info!(message = body.message, "a service rejected a shopper's request");
                Self::Changed
            }
            ApiError::TooManyRequests { retry_after, .. } => Self::TooManyRequests { retry_after },
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
        f.write_str(self.text())
    }
}

impl PageError {
    /// The start of the ids of the page's texts, which end in `-title` and `-text`.
    fn text(&self) -> &'static str {
        match self {
            Self::NotFound | Self::BadHost => "error-not-found",
            Self::Unavailable | Self::TokenRejected => "error-unavailable",
            Self::TooManyRequests { .. } => "error-too-many",
            Self::ProofExpired => "error-proof",
            Self::Changed => "error-changed",
            Self::BadBody(StatusCode::PAYLOAD_TOO_LARGE) => "error-too-large",
            Self::BadBody(StatusCode::UNSUPPORTED_MEDIA_TYPE) => "error-encoding",
            Self::BadForm | Self::BadBody(_) => "error-form",
            Self::TooSlow => "error-slow",
            Self::Internal => "error-internal",
        }
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Unavailable | Self::TokenRejected => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooManyRequests { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::ProofExpired => StatusCode::FORBIDDEN,
            Self::Changed => StatusCode::CONFLICT,
            Self::BadForm | Self::BadHost => StatusCode::BAD_REQUEST,
            Self::BadBody(status) => *status,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// An empty response. The middleware `error_page::render` knows the request and adds the page.
    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.status_code())
    }
}

/// The waiting time in minutes, at least one.
pub(crate) fn minutes(wait: Option<Duration>) -> u64 {
    wait.map_or(1, |wait| wait.as_secs().div_ceil(60)).max(1)
}

#[cfg(test)]
mod tests {
    use pages::api::ErrorBody;

    use super::*;

    #[test]
    fn an_expired_proof_is_distinguished_from_other_denials() {
        let denied = |body| PageError::from(ApiError::Denied(body));
        let code = "proof_expired".to_owned();
        let expired = ErrorBody { code, ..ErrorBody::default() };
        assert_eq!(denied(expired), PageError::ProofExpired);
        assert_eq!(denied(ErrorBody::default()), PageError::NotFound);
    }

    #[test]
    fn waiting_times_are_rounded_up() {
        let wait = |seconds| minutes(Some(Duration::from_secs(seconds)));
        assert_eq!([0, 1, 60, 61, 3600].map(wait), [1, 1, 1, 2, 60]);
        assert_eq!(minutes(None), 1);
    }
}
