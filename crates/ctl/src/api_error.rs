//! An error response of a service.

use std::fmt;
use std::time::Duration;

use domain::json::FieldError;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::Deserialize;

/// Longer `Retry-After` values are cut to this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub struct ApiError {
    pub status: StatusCode,
    message: String,
    errors: Vec<FieldError>,
    request_id: Option<String>,
    pub(crate) retry_after: Option<Duration>,
}

/// The error body of our services, or of OAuth 2.0.
#[derive(Default, Deserialize)]
struct Body {
    message: Option<String>,
    #[serde(default)]
    errors: Vec<FieldError>,
    error: Option<String>,
    error_description: Option<String>,
}

impl ApiError {
    pub(crate) async fn read(response: Response) -> Self {
        let status = response.status();
        let request_id = response.headers().get("x-request-id");
        let request_id = request_id.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let retry_after = retry_after(response.headers());
        // A proxy in front of the service may send something other than JSON.
        let body = response.json().await.unwrap_or_default();
        Self::new(status, body, request_id, retry_after)
    }

    fn new(
        status: StatusCode,
        body: Body,
        request_id: Option<String>,
        retry_after: Option<Duration>,
    ) -> Self {
        let Body { message, errors, error, error_description } = body;
        let message = match (message, error, error_description) {
            (Some(message), ..) => message,
            (None, Some(code), Some(description)) => format!("{description} ({code})"),
            (None, Some(code), None) => code,
            (None, None, _) => format!("the service responded with {status}"),
        };
        Self { status, message, errors, request_id, retry_after }
    }
}

pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for error in &self.errors {
            write!(f, "\n  {error}")?;
        }
        match &self.request_id {
            Some(id) => write!(f, "\n  request id {id}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ApiError {}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(body: &str, expected: &Expect) {
        let body = serde_json::from_str(body).unwrap();
        let error = ApiError::new(StatusCode::BAD_REQUEST, body, Some("r-1".to_owned()), None);
        expected.assert_eq(&error.to_string());
    }

    #[test]
    fn an_error_shows_its_message_fields_and_request_id() {
        check(
            r#"{"message": "2 fields are not valid", "request_id": "r-1", "errors": [
                {"field": "$.name", "code": "missing_field"},
                {"field": "$.currency", "code": "invalid", "detail": "must be an ISO 4217 code"}]}"#,
            &expect![[r#"
                2 fields are not valid
                  $.name: missing_field
                  $.currency: invalid (must be an ISO 4217 code)
                  request id r-1"#]],
        );
        check(
            r#"{"error": "invalid_client", "error_description": "client authentication failed"}"#,
            &expect![[r#"
                client authentication failed (invalid_client)
                  request id r-1"#]],
        );
        check(
            "{}",
            &expect![[r#"
                the service responded with 400 Bad Request
                  request id r-1"#]],
        );
    }
}
