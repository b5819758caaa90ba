//! Memory for request bodies and responses: one budget per process, `[http] max_inflight`.
//!
//! The body of a caller with a token acquires memory before it is read. A body without a token acquires memory for
//! the bytes that have arrived, so a stranger who announces large bodies takes none. A response keeps what it needs
//! until it is sent. Once half of the budget is used, one caller gets a quarter at most, and one network without a
//! token less, so a caller that sends or reads slowly cannot shut out the others. Only small bodies may use the last
//! eighth.
//!
//! See docs/decisions/memory-limits.md.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use actix_web::{HttpMessage as _, HttpRequest, ResponseError as _, web};
use bytes::Bytes;

use super::{BodyLimits, ClientIp, body_limits::SMALL_BODY_BYTES};
use crate::{MemoryBudget, MemoryPermit, Overloaded, Problem, identity::Caller, limits};

/// A body and everything parsed from it take at most this many times the body.
const BODY_FACTOR: usize = 10;
/// While a body arrives, its buffer has up to twice the bytes.
const ARRIVING_FACTOR: usize = 2;
/// A response, and the rows it is built from.
const RESPONSE_FACTOR: usize = 2;
/// The share of one caller is this part of the budget.
const CALLER_PART: usize = 4;
/// The share of one network whose requests have no token.
const NETWORK_PART: usize = 32;
/// This part of the budget is kept for small bodies.
const SMALL_BODIES_PART: usize = 8;
/// Memory for a small body.
const SMALL_BODY: usize = SMALL_BODY_BYTES * BODY_FACTOR;
/// Shorter responses are not counted: error responses must be possible when the budget is used up.
const UNCOUNTED_RESPONSE: usize = 4096;

/// The budget, and how much of it each caller has.
#[derive(Debug)]
pub(super) struct HttpMemory {
    budget: MemoryBudget,
    max_body: usize,
    /// The part of the budget that large bodies and responses may use.
    max_large: usize,
    caller_share: usize,
    network_share: usize,
    used_by_caller: Mutex<HashMap<String, usize>>,
}

impl HttpMemory {
    pub(super) fn new(max_inflight_bytes: usize, limits: BodyLimits) -> Self {
        let largest = limits.max_bytes.saturating_mul(BODY_FACTOR);
        let largest_public = limits.max_public_bytes.saturating_mul(BODY_FACTOR);
        // At least one body of the largest size must fit.
        let budget = MemoryBudget::new(max_inflight_bytes.max(largest));
        let total = budget.total_bytes();
        Self {
            budget,
            max_body: limits.max_bytes,
            max_large: (total - total / SMALL_BODIES_PART).max(largest),
            caller_share: (total / CALLER_PART).max(largest),
            network_share: (total / NETWORK_PART).max(largest_public),
            used_by_caller: Mutex::default(),
        }
    }

    fn used_by_caller(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.used_by_caller.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The memory of one request. It is free again when the response was sent and all clones are
/// dropped. The default holds none.
#[derive(Debug, Clone, Default)]
pub struct RequestMemory(Option<Arc<Held>>);

#[derive(Debug)]
struct Held {
    memory: web::Data<HttpMemory>,
    caller: String,
    has_token: bool,
    /// Changes only under the lock of `used_by_caller`.
    permit: Mutex<Option<MemoryPermit>>,
}

/// Acquires memory for a response of about this many bytes, and for the rows it is built from.
pub fn reserve_for_response(request: &HttpRequest, bytes: usize) -> Result<(), Overloaded> {
    RequestMemory::of(request).enlarge_for_response(bytes.saturating_mul(RESPONSE_FACTOR))
}

impl RequestMemory {
    /// The memory of a request, none so far for the first caller of this.
    fn of(request: &HttpRequest) -> Self {
        let Some(memory) = request.app_data::<web::Data<HttpMemory>>() else {
            return Self::default();
        };
        let mut extensions = request.extensions_mut();
        if let Some(known) = extensions.get::<Self>() {
            return known.clone();
        }
        let known_caller = extensions.get::<Caller>();
        let caller = match known_caller {
            Some(caller) => caller.quota_key().to_owned(),
            None => limits::network(ClientIp::of(request).0).to_string(),
        };
        let has_token = known_caller.is_some();
        let held = Held { memory: memory.clone(), caller, has_token, permit: Mutex::default() };
        let new = Self(Some(Arc::new(held)));
        extensions.insert(new.clone());
        new
    }

    /// Acquires memory for the body of a request, before it is read: none if the request has no token.
    pub(super) fn acquire_for_body(request: &HttpRequest) -> Result<Self, Overloaded> {
        let new = Self::of(request);
        if let Some(held) = new.0.as_ref().filter(|held| held.has_token) {
            let max_body = held.memory.max_body;
            new.enlarge_for_body(announced_length(request).unwrap_or(max_body).min(max_body))?;
        }
        Ok(new)
    }

    /// Acquires memory for so many bytes of a body that has not arrived completely.
    pub(super) fn enlarge_for_arrived(&self, length: usize) -> Result<(), Overloaded> {
        self.enlarge_within_body_limit(length.saturating_mul(ARRIVING_FACTOR))
    }

    /// Acquires memory for a body of this length and everything parsed from it.
    pub(super) fn enlarge_for_body(&self, length: usize) -> Result<(), Overloaded> {
        self.enlarge_within_body_limit(length.saturating_mul(BODY_FACTOR))
    }

    /// Returns the memory that a body of this length does not need.
    pub(super) fn shrink_to_body(&self, length: usize) {
        self.resize(length.saturating_mul(BODY_FACTOR));
    }

    /// Reserves memory for the response until it is sent. Without memory for it a read is
    /// rejected; the response to a change is sent in any case.
    pub(super) fn reserve_for_response(
        response: ServiceResponse<BoxBody>,
    ) -> ServiceResponse<BoxBody> {
        let known = response.request().extensions().get::<Self>().cloned();
        let length = match response.response().body().size() {
            BodySize::Sized(length) => Some(usize::try_from(length).unwrap_or(usize::MAX)),
            BodySize::None | BodySize::Stream => None,
        };
        let is_short = length.is_some_and(|length| length <= UNCOUNTED_RESPONSE);
        if known.is_none() && (is_short || length.is_none()) {
            return response;
        }
        let may_be_rejected = response.request().method().is_safe() && !is_short;
        let memory = known.unwrap_or_else(|| Self::of(response.request()));
        if let Some(length) = length {
            if may_be_rejected && let Err(overloaded) = memory.enlarge_for_response(length) {
                let (request, _) = response.into_parts();
                return ServiceResponse::new(request, Problem::from(overloaded).error_response());
            }
            memory.resize(length);
        }
        response.map_body(|_, body| ResponseWithMemory { body, _memory: memory }.boxed())
    }

    fn enlarge_within_body_limit(&self, bytes: usize) -> Result<(), Overloaded> {
        let Some(held) = &self.0 else { return Ok(()) };
        let memory = held.memory.get_ref();
        let is_small = bytes <= SMALL_BODY;
        let limit = if is_small { memory.budget.total_bytes() } else { memory.max_large };
        held.enlarge_to(bytes, limit)
    }

    fn enlarge_for_response(&self, bytes: usize) -> Result<(), Overloaded> {
        let Some(held) = &self.0 else { return Ok(()) };
        held.enlarge_to(bytes, held.memory.max_large)
    }

    /// Has this many bytes from now on, or as many as there are.
    fn resize(&self, bytes: usize) {
        let Some(held) = &self.0 else { return };
        let mut used_by_caller = held.memory.used_by_caller();
        let before = held.bytes();
        if bytes < before {
            held.shrink_to(bytes);
        } else {
            let budget = &held.memory.budget;
            let free = held.memory.max_large.saturating_sub(budget.used_bytes());
            if let Ok(permit) = budget.try_acquire((bytes - before).min(free)) {
                held.add(permit);
            }
        }
        let used = used_by_caller.entry(held.caller.clone()).or_default();
        *used = *used + held.bytes() - before;
        if *used == 0 {
            used_by_caller.remove(&held.caller);
        }
    }
}

impl Held {
    /// Has at least this many bytes from now on, or fails if all requests together would have more than the limit.
    fn enlarge_to(&self, bytes: usize, limit: usize) -> Result<(), Overloaded> {
        let HttpMemory { budget, caller_share, network_share, .. } = self.memory.get_ref();
        let mut used_by_caller = self.memory.used_by_caller();
        let additional = bytes.saturating_sub(self.bytes());
        if additional == 0 {
            return Ok(());
        }
        let used_by_all = budget.used_bytes().saturating_add(additional);
        let used = used_by_caller.get(&self.caller).copied().unwrap_or(0);
        let share = if self.has_token { *caller_share } else { *network_share };
        let is_scarce = used_by_all > budget.total_bytes() / 2;
        if used_by_all > limit || (used.saturating_add(additional) > share && is_scarce) {
            return Err(Overloaded);
        }
        let permit = budget.try_acquire(additional)?;
        used_by_caller.insert(self.caller.clone(), used + permit.bytes());
        self.add(permit);
        Ok(())
    }

    fn permit(&self) -> MutexGuard<'_, Option<MemoryPermit>> {
        self.permit.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn bytes(&self) -> usize {
        self.permit().as_ref().map_or(0, MemoryPermit::bytes)
    }

    fn add(&self, more: MemoryPermit) {
        match &mut *self.permit() {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
    }

    fn shrink_to(&self, bytes: usize) {
        if let Some(permit) = &mut *self.permit() {
            permit.shrink_to(bytes);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut used_by_caller = self.memory.used_by_caller();
        let bytes = self.bytes();
        if let Some(used) = used_by_caller.get_mut(&self.caller) {
            *used -= bytes;
            if *used == 0 {
                used_by_caller.remove(&self.caller);
            }
        }
    }
}

/// A response that holds its memory until the server has sent it.
struct ResponseWithMemory {
    body: BoxBody,
    _memory: RequestMemory,
}

impl MessageBody for ResponseWithMemory {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}

/// The length that a request announces. A gzipped body may have any length.
fn announced_length(request: &HttpRequest) -> Option<usize> {
    let headers = request.headers();
    if headers.contains_key(CONTENT_ENCODING) {
        return None;
    }
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
