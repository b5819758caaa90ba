//! Errors and their responses.
//!
//! A service has one error enum with an [`ErrorKind`] for each variant. The kind decides the status code, the
//! log level, and (in `messaging`) whether a failed event counts towards the delivery limit. A 5xx response
//! does not contain the cause; the log does, with the request id.

use std::{borrow::Cow, fmt, time::Duration};

use actix_web::{HttpResponse, ResponseError, http::StatusCode, http::header};
use domain::json::{FieldError, ValidationError};
use serde::Serialize;
use utoipa::ToSchema;

use crate::request_id::request_id;

/// The `Retry-After` header of a failure that has no time of its own.
pub const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The kind of an error, from the point of view of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request cannot be read.
    Malformed,
    /// No valid token.
    Unauthenticated,
    /// The token is valid and does not allow this.
    Denied,
    /// The resource does not exist, or belongs to another merchant.
    Missing,
    /// The body did not arrive in time.
    TooSlow,
    /// The request conflicts with the state of the resource.
    Conflict,
    /// The resource is not the version that `If-Match` names, or exists against `If-None-Match`.
    Changed,
    TooLarge,
    /// The media type or encoding is not supported.
    Unsupported,
    /// The request is readable and breaks a rule.
    Invalid,
    /// A limit or a capacity is reached.
    Limited,
    /// A merchant's server cannot be reached while the caller waits for it.
    BadGateway,
    /// A dependency does not respond in time; the same request may succeed later.
    Unavailable,
    /// A bug or damaged data.
    Internal,
}

impl ErrorKind {
    pub fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Denied => StatusCode::FORBIDDEN,
            Self::Missing => StatusCode::NOT_FOUND,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Conflict => StatusCode::CONFLICT,
            Self::Changed => StatusCode::PRECONDITION_FAILED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Limited => StatusCode::TOO_MANY_REQUESTS,
            Self::BadGateway => StatusCode::BAD_GATEWAY,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// An error that knows its kind.
pub trait Failure: std::error::Error + Send + Sync + 'static {
    fn kind(&self) -> ErrorKind;

    /// The failing fields, for [`ErrorKind::Invalid`].
    fn fields(&self) -> &[FieldError] {
        &[]
    }

    /// A word by which programs recognise the error, where the status is not enough.
    fn code(&self) -> Option<&'static str> {
        None
    }

    /// The `Retry-After` header, for [`ErrorKind::Limited`] and [`ErrorKind::Unavailable`].
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// The `WWW-Authenticate` header (RFC 6750), for [`ErrorKind::Unauthenticated`] and
    /// [`ErrorKind::Denied`].
    fn challenge(&self) -> Option<Cow<'static, str>> {
        None
    }
}

impl Failure for ValidationError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }

    fn fields(&self) -> &[FieldError] {
        &self.errors
    }
}

/// The error of every handler: any [`Failure`], as a response.
pub struct Problem(Box<dyn Failure>);

impl<F: Failure> From<F> for Problem {
    fn from(failure: F) -> Self {
        Self(Box::new(failure))
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The body of every 4xx and 5xx response.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody {
    /// Description of the error.
    pub message: String,
    /// A word for programs, where the status is not enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "proof_expired")]
    pub code: Option<&'static str>,
    /// Every failing field; only with 422.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Mention it when you ask for help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.0.kind().status()
    }

    fn error_response(&self) -> HttpResponse {
        let kind = self.0.kind();
        let retry_after = self.0.retry_after().or(match kind {
            ErrorKind::Limited | ErrorKind::Unavailable => Some(DEFAULT_RETRY_AFTER),
            _ => None,
        });
        let message = match kind {
            ErrorKind::Internal => {
                tracing::error!(error = %chain(self.0.as_ref()), "request failed: {}", self.0);
                "something went wrong on our side".to_owned()
            }
            ErrorKind::Unavailable => {
                tracing::warn!(error = %chain(self.0.as_ref()), "request failed: {}", self.0);
                "temporarily unavailable".to_owned()
            }
            _ => self.0.to_string(),
        };
        let message = match retry_after {
            Some(pause) => with_retry(&message, pause),
            None => message,
        };
        let mut response = HttpResponse::build(kind.status());
        if let Some(challenge) = self.0.challenge().or_else(|| default_challenge(kind)) {
            response.insert_header((header::WWW_AUTHENTICATE, challenge.as_ref()));
        }
        if let Some(pause) = retry_after {
            response.insert_header((header::RETRY_AFTER, whole_seconds(pause).to_string()));
        }
        response.json(ErrorBody {
            message,
            code: self.0.code(),
            errors: self.0.fields().to_vec(),
            request_id: request_id(),
        })
    }
}

/// An error and its sources, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.ends_with(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = error.source();
    }
    line
}

fn default_challenge(kind: ErrorKind) -> Option<Cow<'static, str>> {
    match kind {
        ErrorKind::Unauthenticated => Some("Bearer".into()),
        ErrorKind::Denied => Some("Bearer error=\"insufficient_scope\"".into()),
        _ => None,
    }
}

/// The message of a response with a `Retry-After` header: the limit that was reached, and the time to wait.
pub fn with_retry(message: &str, pause: Duration) -> String {
    match whole_seconds(pause) {
        1 => format!("{message}; try again in 1 second"),
        seconds => format!("{message}; try again in {seconds} seconds"),
    }
}

/// The value of a `Retry-After` header: at least a second.
pub fn whole_seconds(pause: Duration) -> u64 {
    pause.as_millis().div_ceil(1000).max(1).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use serde_json::Value;

    use super::*;
    use crate::batching::SubmitError;
    use crate::database::DatabaseError;
    use crate::memory::Overloaded;

    #[derive(Debug, thiserror::Error)]
    #[error("the merchant has another preview in progress")]
    struct InProgress(Duration);

    impl Failure for InProgress {
        fn kind(&self) -> ErrorKind {
            ErrorKind::Limited
        }

        fn retry_after(&self) -> Option<Duration> {
            Some(self.0)
        }
    }

    async fn check(failure: impl Failure, message: &str, retry_after: &str) {
        let response = Problem::from(failure).error_response();
        let after = response.headers().get(header::RETRY_AFTER).unwrap();
        assert_eq!(after, retry_after, "{message}");
        let body = to_bytes(response.into_body()).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["message"], message);
    }

    #[tokio::test]
    async fn a_refusal_names_the_limit_and_the_time_to_wait() {
        let second = "; try again in 1 second";
        for (error, limit) in [
            (
                DatabaseError::TooManyReaders,
                "this service runs too many lists, searches and reports at once",
            ),
            (
                DatabaseError::Contended,
                "too many requests about the same rows at once, or other changes keep them locked",
            ),
        ] {
            check(error, &format!("{limit}{second}"), "1").await;
        }
        let full = "too many requests wait for the database";
        check(SubmitError::Full, &format!("{full}{second}"), "1").await;
        let unavailable = format!("temporarily unavailable{second}");
        check(SubmitError::Stopped, &unavailable, "1").await;
        check(SubmitError::NoDatabase, &unavailable, "1").await;
        let overloaded = Overloaded.retry_after().unwrap();
        let bodies = "the bodies of the requests in progress take too much memory";
        let expected = with_retry(bodies, overloaded);
        check(Overloaded, &expected, &whole_seconds(overloaded).to_string()).await;
        let preview = "the merchant has another preview in progress; try again in 3 seconds";
        check(InProgress(Duration::from_millis(2500)), preview, "3").await;
    }
}
