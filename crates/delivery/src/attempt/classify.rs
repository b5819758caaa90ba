//! The outcome of a request by its response.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use reqwest::{Response, header};
use tokio::time::Instant;

use super::call::Call;
use super::{ResponseBody, later};
use crate::ack_tracker::SLOW_AFTER;
use crate::client::{BodyEnd, RequestError, read_body};
use crate::outcome::{Outcome, Signal};

/// The result of a request, before it is logged.
pub(super) struct Classified {
    pub(super) outcome: Outcome,
    pub(super) signal: Signal,
    /// Body of the response, as far as it was read.
    pub(super) body: Bytes,
}

/// Reads the response. The status decides, unless the call requires the body.
pub(super) async fn classify(
    call: Call<'_>,
    response: Response,
    started_at: DateTime<Utc>,
    started: Instant,
    deadline: Instant,
) -> Classified {
    let status = response.status().as_u16();
    let retry_after =
        response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let outcome = Outcome::from_status(status, retry_after, later(started_at, started));
    let (body, end) = read_body(response, call.max_response_bytes(), deadline).await;
    let outcome = match (&outcome, call, &end) {
        (Outcome::Delivered { .. }, Call::Fetch(_), BodyEnd::TooLarge) => {
            Outcome::ResponseTooLarge { status }
        }
        (Outcome::Delivered { .. }, _, BodyEnd::Failed(error))
            if call.response_body() == ResponseBody::Required =>
        {
            error.clone().into()
        }
        _ => outcome,
    };
    // A response that is cut off late occupies the sender about as long as a timeout.
    let signal = match end {
        BodyEnd::Failed(RequestError::TimedOut) => Signal::Shrink,
        BodyEnd::Failed(_) if started.elapsed() >= SLOW_AFTER => Signal::Shrink,
        BodyEnd::Failed(_) | BodyEnd::Complete | BodyEnd::TooLarge => outcome.signal(),
    };
    Classified { outcome, signal, body }
}
