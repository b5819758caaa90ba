//! An error response of a service.

use std::fmt;
use std::time::Duration;

use domain::json::FieldError;
use domain::printable::one_line;
use domain::returns::{Ineligible, UnitId};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;

/// Longer `Retry-After` values are cut to this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub struct ApiError {
    pub status: StatusCode,
    message: String,
    errors: Vec<FieldError>,
    /// The reasons of a conflict or a refusal, in words.
    reasons: Vec<String>,
    request_id: Option<String>,
    pub(crate) retry_after: Option<Duration>,
}

/// The error body of our services, or of OAuth 2.0.
#[derive(Default, Deserialize)]
struct Body {
    message: Option<String>,
    #[serde(default)]
    errors: Vec<FieldError>,
    #[serde(default)]
    ineligible: Vec<IneligibleUnit>,
    #[serde(default)]
    changes: Vec<QuoteChange>,
    error: Option<String>,
    error_description: Option<String>,
}

/// A unit that cannot be returned.
#[derive(Deserialize)]
struct IneligibleUnit {
    #[serde(flatten)]
    unit: UnitId,
    #[serde(flatten)]
    ineligible: Ineligible,
}

/// A difference between a quote and the return.
#[derive(Deserialize)]
struct QuoteChange {
    unit: Option<UnitId>,
    field: String,
    quoted: Value,
    current: Value,
}

impl Body {
    fn reasons(&self) -> Vec<String> {
        let ineligible =
            self.ineligible.iter().map(|it| format!("{}: {}", it.unit, it.ineligible.in_words()));
        let changes = self.changes.iter().map(|QuoteChange { unit, field, quoted, current }| {
            let unit = unit.as_ref().map(|unit| format!("{unit}: ")).unwrap_or_default();
            format!("{unit}{field} was {quoted} and is now {current}")
        });
        ineligible.chain(changes).collect()
    }
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

    /// Names the client whose scopes were not enough.
    #[must_use]
    pub(crate) fn with_client(mut self, client: &str) -> Self {
        if self.status == StatusCode::FORBIDDEN {
            self.reasons.push(client.to_owned());
        }
        self
    }

    fn new(
        status: StatusCode,
        body: Body,
        request_id: Option<String>,
        retry_after: Option<Duration>,
    ) -> Self {
        let reasons = body.reasons();
        let Body { message, errors, error, error_description, .. } = body;
        let message = match (message, error, error_description) {
            (Some(message), ..) => message,
            (None, Some(code), Some(description)) => format!("{description} ({code})"),
            (None, Some(code), None) => code,
            (None, None, _) => format!("the service responded with {status}"),
        };
        Self { status, message, errors, reasons, request_id, retry_after }
    }
}

pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only the line breaks below are ours.
        f.write_str(&one_line(&self.message))?;
        for error in &self.errors {
            write!(f, "\n  {}", one_line(&error.to_string()))?;
        }
        for reason in &self.reasons {
            write!(f, "\n  {}", one_line(reason))?;
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
    fn a_refusal_names_the_client() {
        let error = |status| {
            let body =
                serde_json::from_str(r#"{"message": "this needs the scope manage"}"#).unwrap();
            ApiError::new(status, body, None, None).with_client("client bh_1 was used").to_string()
        };
        let refusal = "this needs the scope manage\n  client bh_1 was used";
        assert_eq!(error(StatusCode::FORBIDDEN), refusal);
        assert_eq!(error(StatusCode::NOT_FOUND), "this needs the scope manage");
    }

    #[test]
    fn a_response_cannot_add_a_line() {
        check(
            r#"{"message": "no order \"a\nerror: b\"", "errors": [
                {"field": "$.x\n", "code": "invalid", "detail": "y\r\nrequest id r-2"}],
                "changes": [{"field": "a\nb", "quoted": 1, "current": 2}]}"#,
            &expect![[r#"
                no order "a\nerror: b"
                  $.x\n: invalid (y\r\nrequest id r-2)
                  a\nb was 1 and is now 2
                  request id r-1"#]],
        );
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
            r#"{"message": "some units cannot be returned", "quote": {}, "ineligible": [
                {"order_identifier": "1001", "order_line_item_identifier": "L-1", "unit": 1,
                 "code": "window_expired", "detail": "the unit could be returned until 2 November 2026",
                 "rule": "short"}]}"#,
            &expect![[r#"
                some units cannot be returned
                  unit 1 of line L-1 of order 1001: the unit could be returned until 2 November 2026 (rule short)
                  request id r-1"#]],
        );
        check(
            r#"{"message": "the quote is out of date", "quote": {}, "changes": [
                {"field": "return_shipping_cost_cents", "quoted": 0, "current": 500}]}"#,
            &expect![[r#"
                the quote is out of date
                  return_shipping_cost_cents was 0 and is now 500
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
