//! What arrived, the newest last; the oldest entries make room, the count goes on.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use actix_web::web::Bytes;
use platform::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::signature::Verdict;

/// A request as it is kept.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub at: Timestamp,
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub signature: Verdict,
    /// The status answered, or the name of the way it was not.
    pub answer: String,
}

/// A request as it is shown.
#[derive(Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Counts from 1, over all requests since the journal was last cleared.
    pub number: u64,
    pub at: Timestamp,
    pub method: String,
    pub path: String,
    pub headers: serde_json::Map<String, Value>,
    /// The JSON document, or the text when it is none.
    pub body: Value,
    pub signature: Verdict,
    pub answer: String,
}

/// Which entries to show; all that is given must fit.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    pub path: Option<String>,
    pub event: Option<String>,
    pub webhook_id: Option<String>,
    pub signature: Option<Verdict>,
    /// Entries with a greater number.
    pub after: Option<u64>,
    pub limit: Option<usize>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Page {
    /// All requests that arrived, kept or not.
    pub total: u64,
    pub entries: Vec<Entry>,
}

const SHOWN_AT_ONCE: usize = 1000;

#[derive(Debug)]
pub struct Journal {
    /// Zero: nothing is kept.
    capacity: usize,
    total: AtomicU64,
    kept: Mutex<VecDeque<(u64, Arrival)>>,
}

impl Journal {
    pub fn new(capacity: usize) -> Self {
        Self { capacity, total: AtomicU64::new(0), kept: Mutex::default() }
    }

    /// Counts a request, and keeps it if anything is kept.
    pub fn note(&self, arrival: impl FnOnce() -> Arrival) {
        if self.capacity == 0 {
            self.total.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let arrival = arrival();
        let mut kept = self.lock();
        let number = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        if kept.len() >= self.capacity {
            kept.pop_front();
        }
        kept.push_back((number, arrival));
    }

    pub fn page(&self, filter: &Filter) -> Page {
        let kept = self.lock();
        let entries = kept
            .iter()
            .filter(|(number, arrival)| filter.fits(*number, arrival))
            .take(filter.limit.unwrap_or(SHOWN_AT_ONCE))
            .map(|(number, arrival)| arrival.entry(*number))
            .collect();
        Page { total: self.total.load(Ordering::Relaxed), entries }
    }

    pub fn clear(&self) {
        let mut kept = self.lock();
        kept.clear();
        self.total.store(0, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, Arrival)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arrival {
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
            answer: self.answer.clone(),
        }
    }
}

impl Filter {
    fn fits(&self, number: u64, arrival: &Arrival) -> bool {
        let header = |want: &Option<String>, name| {
            want.as_deref().is_none_or(|want| arrival.header(name) == Some(want))
        };
        self.after.is_none_or(|after| number > after)
            && self.path.as_deref().is_none_or(|path| arrival.path == path)
            && self.signature.is_none_or(|signature| arrival.signature == signature)
            && header(&self.event, "x-service-event")
            && header(&self.webhook_id, "webhook-id")
    }
}
