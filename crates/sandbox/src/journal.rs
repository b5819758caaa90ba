//! The request journal: the newest received requests, and a count of all.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use actix_web::web::Bytes;
use platform::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::signature::SignatureStatus;

/// A received request and the response to it.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub at: Timestamp,
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub signature: SignatureStatus,
    /// The status code, or the name of the step that sent none.
    pub response: String,
}

/// A request as the API returns it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Position among all requests since the journal was cleared, from 1.
    pub number: u64,
    pub at: Timestamp,
    pub method: String,
    pub path: String,
    pub headers: serde_json::Map<String, Value>,
    /// The body as JSON, or as text if it is not JSON.
    pub body: Value,
    pub signature: SignatureStatus,
    pub response: String,
}

/// A filter for entries; all conditions must match.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    pub path: Option<String>,
    pub event: Option<String>,
    pub webhook_id: Option<String>,
    pub signature: Option<SignatureStatus>,
    /// Only entries with a greater number.
    pub after: Option<u64>,
    pub limit: Option<usize>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Page {
    /// Number of received requests, stored or not.
    pub total: u64,
    pub entries: Vec<Entry>,
}

const DEFAULT_PAGE_SIZE: usize = 1000;

#[derive(Debug)]
pub struct Journal {
    /// Zero disables storing.
    capacity: usize,
    total: AtomicU64,
    requests: Mutex<VecDeque<(u64, ReceivedRequest)>>,
}

impl Journal {
    pub fn new(capacity: usize) -> Self {
        Self { capacity, total: AtomicU64::new(0), requests: Mutex::default() }
    }

    /// Counts a request and stores it.
    pub fn record(&self, request: impl FnOnce() -> ReceivedRequest) {
        if self.capacity == 0 {
            self.total.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let request = request();
        let mut requests = self.lock();
        let number = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        if requests.len() >= self.capacity {
            requests.pop_front();
        }
        requests.push_back((number, request));
    }

    pub fn page(&self, filter: &Filter) -> Page {
        let requests = self.lock();
        let entries = requests
            .iter()
            .filter(|(number, request)| filter.matches(*number, request))
            .take(filter.limit.unwrap_or(DEFAULT_PAGE_SIZE))
            .map(|(number, request)| request.entry(*number))
            .collect();
        Page { total: self.total.load(Ordering::Relaxed), entries }
    }

    pub fn clear(&self) {
        let mut requests = self.lock();
        requests.clear();
        self.total.store(0, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, ReceivedRequest)>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReceivedRequest {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn entry(&self, number: u64) -> Entry {
        let text = || Value::String(String::from_utf8_lossy(&self.body).into_owned());
        let headers = self.headers.iter().cloned().map(|(name, value)| (name, value.into()));
        Entry {
            number,
            at: self.at,
            method: self.method.clone(),
            path: self.path.clone(),
            headers: headers.collect(),
            body: serde_json::from_slice(&self.body).unwrap_or_else(|_| text()),
            signature: self.signature,
            response: self.response.clone(),
        }
    }
}

impl Filter {
    fn matches(&self, number: u64, request: &ReceivedRequest) -> bool {
        let header = |expected: &Option<String>, name| {
            expected.as_deref().is_none_or(|expected| request.header(name) == Some(expected))
        };
        self.after.is_none_or(|after| number > after)
            && self.path.as_deref().is_none_or(|path| request.path == path)
            && self.signature.is_none_or(|signature| request.signature == signature)
            && header(&self.event, "x-service-event")
            && header(&self.webhook_id, "webhook-id")
    }
}
