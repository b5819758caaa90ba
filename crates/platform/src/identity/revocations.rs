//! Tokens and clients that are no longer welcome, held in memory until their tokens would have
//! expired anyway. Where they come from is the business of whoever fills this.

use std::{collections::HashMap, sync::RwLock};

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// What was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "lowercase")]
pub enum Revoked {
    /// One token, by its `jti`.
    Token(String),
    /// Every token of a client.
    Client(String),
}

/// A revocation, and until when it matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    #[serde(flatten)]
    pub what: Revoked,
    pub until: Timestamp,
}

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
