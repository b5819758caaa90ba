//! The outcome of a request by its response.

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use platform::{MemoryBudget, MemoryPermit};
use reqwest::{Response, header};
use tokio::time::Instant;

use super::call::Call;
use super::{ResponseBody, later};
use crate::ack_tracker::SLOW_AFTER;
use crate::client::{BodyEnd, MAX_RESPONSE_BYTES, RequestError, read_body};
use crate::outcome::{Outcome, Signal};

/// The result of a request, before it is logged.
pub(super) struct Classified {
    pub(super) outcome: Outcome,
    pub(super) signal: Signal,
    /// Body of the response, as far as it was read.
    pub(super) body: Bytes,
    /// The memory of a long body.
    pub(super) memory: Option<Arc<MemoryPermit>>,
}

/// Reads the response. The status decides, unless the call requires the body. A long body waits for a part of
/// `budget` first.
pub(super) async fn classify(
    call: Call<'_>,
    response: Response,
    budget: &MemoryBudget,
    started_at: DateTime<Utc>,
    started: Instant,
    deadline: Instant,
) -> Classified {
    let status = response.status().as_u16();
    let retry_after =
        response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let outcome = Outcome::from_status(status, retry_after, later(started_at, started));
    let max_bytes = call.max_response_bytes(&outcome);
    let (body, end, memory) = match memory_for(&response, call, max_bytes, budget, deadline).await {
        Ok(memory) => {
            let (body, end) = read_body(response, max_bytes, deadline).await;
            (body, end, memory)
        }
        Err(error) => (Bytes::new(), BodyEnd::Failed(error), None),
    };
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
    Classified { outcome, signal, body, memory }
}

/// The memory of the response to a message, if it is longer than the usual ones or does not announce its length.
async fn memory_for(
    response: &Response,
    call: Call<'_>,
    max_bytes: usize,
    budget: &MemoryBudget,
    deadline: Instant,
) -> Result<Option<Arc<MemoryPermit>>, RequestError> {
    let announced = response.content_length().and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = announced.unwrap_or(max_bytes).min(max_bytes);
    if matches!(call, Call::Fetch(_)) || bytes <= MAX_RESPONSE_BYTES {
        return Ok(None);
    }
    match tokio::time::timeout_at(deadline, budget.acquire(bytes)).await {
        Ok(permit) => Ok(Some(Arc::new(permit))),
        Err(_) => Err(RequestError::TimedOut),
    }
}
