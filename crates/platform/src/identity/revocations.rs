//! Tokens and clients that are no longer welcome, held in memory until their tokens would have
//! expired anyway. Where they come from is the business of whoever fills this.

use std::{collections::HashMap, sync::RwLock};

use domain::access::{Revocation, Revoked};

use crate::Timestamp;

/// The revocations in force in this process.
#[derive(Debug, Default)]
pub struct Revocations(RwLock<HashMap<Revoked, Timestamp>>);

impl Revocations {
    pub fn add(&self, revocation: Revocation) {
        let mut revoked = self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        revoked.insert(revocation.what, revocation.until);
    }

    /// Whether a token, or the client it was given to, was revoked.
    pub fn covers(&self, token: &str, client: &str) -> bool {
        let revoked = self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        !revoked.is_empty()
            && (revoked.contains_key(&Revoked::Token(token.to_owned()))
                || revoked.contains_key(&Revoked::Client(client.to_owned())))
    }

    /// Forgets what no longer matters.
    pub fn forget_expired(&self, now: Timestamp) {
        let mut revoked = self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        revoked.retain(|_, until| *until > now);
    }
}
