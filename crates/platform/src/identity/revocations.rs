//! Revoked tokens, clients and sessions, kept in memory until their tokens expire. The owner fills the list. No
//! token is accepted until the owner marks the list as complete.

use std::{
    collections::HashMap,
    sync::{
        RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use domain::access::{Revocation, Revoked};
use uuid::Uuid;

use crate::Timestamp;

/// The revocations in force in this process.
#[derive(Debug, Default)]
pub struct Revocations {
    revoked: RwLock<HashMap<Revoked, Timestamp>>,
    loaded: AtomicBool,
}

impl Revocations {
    pub fn add(&self, revocation: Revocation) {
        let mut revoked = self.revoked.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        revoked.insert(revocation.revoked, revocation.expires_at);
    }

    /// Marks the list as complete: all revocations so far were added.
    pub fn set_loaded(&self) {
        self.loaded.store(true, Ordering::Release);
    }

    pub fn are_loaded(&self) -> bool {
        self.loaded.load(Ordering::Acquire)
    }

    /// Whether a token or its client was revoked.
    pub fn covers(&self, token: &str, client: &str) -> bool {
        let revoked = self.revoked.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        !revoked.is_empty()
            && (revoked.contains_key(&Revoked::Token(token.to_owned()))
                || revoked.contains_key(&Revoked::Client(client.to_owned())))
    }

    /// Whether the session of a person ended before it expired.
    pub fn covers_session(&self, id: Uuid) -> bool {
        let revoked = self.revoked.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        !revoked.is_empty() && revoked.contains_key(&Revoked::Session(id.to_string()))
    }

    /// Deletes the revocations whose tokens have expired. `now` is the earlier of the times of the database and of
    /// this process. A revocation that a wrong clock of this process deleted would not be read again, and a token
    /// is checked with the clock of this process.
    pub fn remove_expired(&self, now: Timestamp) {
        let mut revoked = self.revoked.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        revoked.retain(|_, until| *until > now);
    }
}
