//! Memory for request bodies and responses: one budget per process, `[http] max_inflight`.
//!
//! A body acquires memory before it is read; its response keeps what it needs until it is sent.
//! Once half of the budget is used, one caller gets a quarter at most, so a caller that sends or
//! reads slowly cannot shut out the others.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use actix_web::{HttpMessage as _, HttpRequest, ResponseError as _, web};
use bytes::Bytes;

use super::{ClientIp, Settings};
use crate::{MemoryBudget, MemoryPermit, Overloaded, Problem, identity::Caller, limits};

/// A body and everything parsed from it take at most this many times the body.
const BODY_FACTOR: usize = 10;
/// A response, and the rows it is built from.
const RESPONSE_FACTOR: usize = 2;
/// The share of one caller is this part of the budget.
const CALLER_PART: usize = 4;
/// Shorter responses are not counted: error responses must be possible when the budget is used up.
const UNCOUNTED_RESPONSE: usize = 4096;

/// The budget, and how much of it each caller has.
#[derive(Debug)]
pub(super) struct HttpMemory {
    budget: MemoryBudget,
    max_body: usize,
    caller_share: usize,
    used_by_caller: Mutex<HashMap<String, usize>>,
}

impl HttpMemory {
    pub(super) fn new(settings: &Settings) -> Self {
        // At least one body of the largest size must fit.
        let largest = settings.max_body_bytes.saturating_mul(BODY_FACTOR);
        let budget = MemoryBudget::new(settings.max_inflight_bytes.max(largest));
        let caller_share = (budget.total_bytes() / CALLER_PART).max(largest);
        let max_body = settings.max_body_bytes;
        Self { budget, max_body, caller_share, used_by_caller: Mutex::default() }
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
    /// Changes only under the lock of `used_by_caller`.
    permit: Mutex<Option<MemoryPermit>>,
}

/// Acquires memory for a response of about this many bytes, and for the rows it is built from.
pub fn reserve_for_response(request: &HttpRequest, bytes: usize) -> Result<(), Overloaded> {
    RequestMemory::of(request).enlarge_to(bytes.saturating_mul(RESPONSE_FACTOR))
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
        let caller = match extensions.get::<Caller>() {
            Some(caller) => caller.quota_key().to_owned(),
            None => limits::network(ClientIp::of(request).0).to_string(),
        };
        let held = Held { memory: memory.clone(), caller, permit: Mutex::default() };
        let new = Self(Some(Arc::new(held)));
        extensions.insert(new.clone());
        new
    }

    /// Acquires memory for the body of a request, before it is read.
    pub(super) fn acquire_for_body(request: &HttpRequest) -> Result<Self, Overloaded> {
        let new = Self::of(request);
        if let Some(held) = &new.0 {
            let max_body = held.memory.max_body;
            let body = announced_length(request).unwrap_or(max_body).min(max_body);
            new.enlarge_to(body.saturating_mul(BODY_FACTOR))?;
        }
        Ok(new)
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
        if known.is_none() && length.is_none_or(|length| length <= UNCOUNTED_RESPONSE) {
            return response;
        }
        let is_read = known.is_none() && response.request().method().is_safe();
        let memory = known.unwrap_or_else(|| Self::of(response.request()));
        if let Some(length) = length {
            if is_read && let Err(overloaded) = memory.enlarge_to(length) {
                let (request, _) = response.into_parts();
                return ServiceResponse::new(request, Problem::from(overloaded).error_response());
            }
            memory.resize(length);
        }
        response.map_body(|_, body| ResponseWithMemory { body, _memory: memory }.boxed())
    }

    /// Has at least this many bytes from now on, or fails.
    fn enlarge_to(&self, bytes: usize) -> Result<(), Overloaded> {
        let Some(held) = &self.0 else { return Ok(()) };
        let HttpMemory { budget, caller_share, .. } = held.memory.get_ref();
        let mut used_by_caller = held.memory.used_by_caller();
        let additional = bytes.saturating_sub(held.bytes());
        if additional == 0 {
            return Ok(());
        }
        let used = used_by_caller.get(&held.caller).copied().unwrap_or(0);
        let is_scarce = budget.used_bytes() + additional > budget.total_bytes() / 2;
        if used + additional > *caller_share && is_scarce {
            return Err(Overloaded);
        }
        let permit = budget.try_acquire(additional)?;
        used_by_caller.insert(held.caller.clone(), used + permit.bytes());
        held.add(permit);
        Ok(())
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
            let free = budget.total_bytes() - budget.used_bytes();
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
