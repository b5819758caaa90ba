//! How an error becomes an answer.
//!
//! A service has one error enum and says of each variant which [`ErrorKind`] it is; the kind decides
//! the status code, the log level, and (in `messaging`) whether an event is tried again. A 5xx
//! tells the caller nothing of the cause: that is in the log, under the request id.

use std::{fmt, time::Duration};

use actix_web::{HttpResponse, ResponseError, http::StatusCode, http::header};
use domain::json::{FieldError, ValidationError};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::request_id;

/// The kind of an error, from the point of view of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Not a request we can read.
    Malformed,
    /// No valid token.
    Unauthenticated,
    /// A valid token that may not do this.
    Denied,
    /// Not there, or not the caller's.
    Missing,
    /// The body did not arrive in time.
    TooSlow,
    /// Does not fit what is there already.
    Conflict,
    TooLarge,
    /// A media type or encoding we do not read.
    Unsupported,
    /// Readable, but breaks a rule.
    Invalid,
    /// Too many requests.
    Limited,
    /// Something we need is down; the same request may work later.
    Unavailable,
    /// Our fault.
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
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Limited => StatusCode::TOO_MANY_REQUESTS,
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

    /// When to come back, for [`ErrorKind::Limited`] and [`ErrorKind::Unavailable`].
    fn retry_after(&self) -> Option<Duration> {
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

/// The error side of every handler: any [`Failure`], ready to be answered.
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

/// The body of every 4xx and 5xx answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody {
    /// Description of the error.
    pub message: String,
    /// Every failing field; only with 422.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Name this when you ask for help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.0.kind().status()
    }

    fn error_response(&self) -> HttpResponse {
        let kind = self.0.kind();
        let message = match kind {
            ErrorKind::Internal => {
                tracing::error!(error = %chain(self.0.as_ref()), "request failed: {}", self.0);
                "something went wrong on our side".to_owned()
            }
            ErrorKind::Unavailable => {
                tracing::warn!(error = %chain(self.0.as_ref()), "request refused: {}", self.0);
                "temporarily unavailable, please try again".to_owned()
            }
            _ => self.0.to_string(),
        };
        let mut answer = HttpResponse::build(kind.status());
        if kind == ErrorKind::Unauthenticated {
            answer.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
        }
        let retry_after = self.0.retry_after().or(match kind {
            ErrorKind::Unavailable => Some(Duration::from_secs(1)),
            _ => None,
        });
        if let Some(pause) = retry_after {
            answer.insert_header((header::RETRY_AFTER, whole_seconds(pause).to_string()));
        }
        answer.json(ErrorBody {
            message,
            errors: self.0.fields().to_vec(),
            request_id: request_id(),
        })
    }
}

/// An error and everything behind it, in one line.
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

fn whole_seconds(pause: Duration) -> u64 {
    pause.as_millis().div_ceil(1000).max(1).try_into().unwrap_or(u64::MAX)
}
