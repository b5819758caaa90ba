//! Responses of the services that are errors.

use std::time::Duration;

use reqwest::{
    StatusCode,
    header::{self, HeaderMap},
};
use serde::Deserialize;

use super::service::Service;

/// The error body of the services.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ErrorBody {
    #[serde(default)]
    pub message: String,
    /// The reason in a form for programs. Few errors have one.
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub errors: Vec<FieldError>,
    /// The other fields, which some errors have.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FieldError {
    pub field: String,
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub detail: Option<String>,
}

impl ErrorBody {
    /// The text of the error at `path`, for example `$.url`.
    pub fn field(&self, path: &str) -> Option<String> {
        let error = self.errors.iter().find(|error| error.field == path)?;
        Some(match (&error.detail, error.code.as_str()) {
            (Some(detail), _) => detail.clone(),
            (None, "missing_field") => "is required".to_owned(),
            (None, code) => code.to_owned(),
        })
    }
}

/// The reason why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ApiError {
    #[error("{service} is not available now")]
    Unavailable { service: Service },
    #[error("the session ended")]
    Unauthenticated { service: Service },
    #[error("{}", .0.message)]
    Denied(ErrorBody),
    #[error("not found")]
    NotFound,
    #[error("{}", .0.message)]
    Conflict(ErrorBody),
    #[error("{}", .0.message)]
    Invalid(ErrorBody),
    #[error("too many requests, try again later")]
    TooManyRequests { service: Service, retry_after: Option<Duration> },
}

impl ApiError {
    /// The error of a response whose status is not a success.
    pub(super) fn new(
        service: Service,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Self {
        let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.as_bytes());
        let is_json = content_type.is_some_and(|value| value.starts_with(b"application/json"));
        let body = || {
            let text: &[u8] = if is_json { body } else { b"" };
            serde_json::from_slice(text).unwrap_or_default()
        };
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthenticated { service },
            StatusCode::FORBIDDEN => Self::Denied(body()),
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => Self::Conflict(body()),
            StatusCode::TOO_MANY_REQUESTS => {
                Self::TooManyRequests { service, retry_after: retry_after(headers) }
            }
            status if status.is_client_error() => Self::Invalid(body()),
            _ => Self::Unavailable { service },
        }
    }
}

/// The waiting time of a `Retry-After` header in seconds, the form that the services send.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_found_by_its_path() {
        let text =
            r#"{"message": "m", "errors": [{"field": "$.url", "code": "invalid", "detail": "d"}]}"#;
        let body: ErrorBody = serde_json::from_str(text).unwrap();
        assert_eq!(body.field("$.url").as_deref(), Some("d"));
        assert_eq!(body.field("$.other"), None);
    }
}
