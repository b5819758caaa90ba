//! A service that did not do as asked, in its own words.

use std::fmt;
use std::time::Duration;

use domain::json::FieldError;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::Deserialize;

/// A pause that a service asks for is believed up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// An answer that is no success.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    message: String,
    errors: Vec<FieldError>,
    request_id: Option<String>,
    pub(crate) retry_after: Option<Duration>,
}

/// Our services' error body, and OAuth's.
#[derive(Deserialize)]
struct Body {
    message: Option<String>,
    #[serde(default)]
    errors: Vec<FieldError>,
    error: Option<String>,
    error_description: Option<String>,
}

impl Refusal {
    pub(crate) async fn read(answer: Response) -> Self {
        let status = answer.status();
        let request_id = answer.headers().get("x-request-id");
        let request_id = request_id.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let retry_after = retry_after(answer.headers());
        match answer.json::<Body>().await {
            Ok(body) => Self::new(status, body, request_id, retry_after),
            // Something between us and the service, most likely.
            Err(_not_ours) => Self {
                status,
                message: format!("the service answers {status}"),
                errors: vec![],
                request_id,
                retry_after,
            },
        }
    }

    fn new(
        status: StatusCode,
        body: Body,
        request_id: Option<String>,
        retry_after: Option<Duration>,
    ) -> Self {
        let Body { message, errors, error, error_description } = body;
        let said = match (message, error, error_description) {
            (Some(message), ..) => message,
            (None, Some(code), Some(description)) => format!("{description} ({code})"),
            (None, Some(code), None) => code,
            (None, None, _) => format!("the service answers {status}"),
        };
        Self { status, message: said, errors, request_id, retry_after }
    }
}

/// When a service wants to be asked again.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_PAUSE))
}

impl fmt::Display for Refusal {
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

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(body: &str, shown: &Expect) {
        let body = serde_json::from_str(body).unwrap();
        let refusal = Refusal::new(StatusCode::BAD_REQUEST, body, Some("r-1".to_owned()), None);
        shown.assert_eq(&refusal.to_string());
    }

    #[test]
    fn everything_that_was_said_is_shown() {
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
                the service answers 400 Bad Request
                  request id r-1"#]],
        );
    }
}
