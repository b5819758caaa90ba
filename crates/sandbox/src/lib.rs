//! A merchant for tests, with failures on demand.
//!
//! The sandbox serves every endpoint of a merchant below any prefix (`/rmas`, `/blue/rmas`), issues
//! tokens, checks signatures and keeps a journal of received requests. Behaviour rules make a path
//! fail; without rules every request is accepted. It also has a small catalogue with pictures, and an inbox that shows
//! the mails to shoppers.

pub mod behaviour;
pub mod journal;
pub mod mails;
pub mod settings;
pub mod signature;

mod catalogue;
mod control;
mod interface;
mod merchant;
mod response;
mod server;
#[cfg(test)]
mod tests;
mod tokens;

use std::sync::RwLock;

use platform::Clock;
use secrecy::ExposeSecret;

use crate::behaviour::Behaviours;
use crate::journal::Journal;
use crate::mails::Inbox;
use crate::settings::Settings;
use crate::signature::Secrets;
use crate::tokens::Tokens;

pub use server::{Running, check_health, serve, start};

/// State shared by all workers.
pub(crate) struct Sandbox {
    pub(crate) journal: Journal,
    pub(crate) inbox: Inbox,
    pub(crate) behaviours: Behaviours,
    pub(crate) secrets: RwLock<Secrets>,
    pub(crate) signature_required: bool,
    pub(crate) tokens: Tokens,
    /// Empty: the URL of the request.
    pub(crate) public_url: String,
    pub(crate) clock: Clock,
}

impl Sandbox {
    fn new(settings: &Settings, clock: Clock) -> anyhow::Result<Self> {
        let secrets = settings.signing.secrets.iter().map(ExposeSecret::expose_secret);
        let secrets = Secrets::parse(secrets)
            .map_err(|error| anyhow::anyhow!("signing.secrets is invalid: {error}"))?;
        let capacity = if settings.journal.enabled { settings.journal.capacity } else { 0 };
        Ok(Self {
            journal: Journal::new(capacity),
            inbox: Inbox::new(&settings.mail),
            behaviours: Behaviours::default(),
            secrets: RwLock::new(secrets),
            signature_required: settings.signing.required,
            tokens: Tokens::new(settings.tokens.lifetime),
            public_url: settings.http.public_url.clone(),
            clock,
        })
    }
}
