//! The inbox of the sandbox: an SMTP server that accepts every mail, and pages that show them.
//!
//! It is off until `mail.enabled` is set. Nothing is sent on.

mod pages;
mod smtp;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Mutex, MutexGuard, PoisonError};

use actix_web::web;
use anyhow::Context as _;
use mail_parser::{Address, MessageParser};
use platform::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Sandbox;
use crate::settings;

pub(crate) use pages::routes;

/// A received mail.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReceivedMail {
    /// Position among all mails since the start, from 1.
    pub number: u64,
    pub at: Timestamp,
    /// The recipients of the envelope.
    pub to: Vec<String>,
    /// The sender of the header `From`, with its name.
    pub from: String,
    pub reply_to: String,
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// The newest mails.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Zero disables the inbox.
    capacity: usize,
    mails: Mutex<VecDeque<ReceivedMail>>,
}

impl Inbox {
    pub(crate) fn new(settings: &settings::Mail) -> Self {
        let capacity = if settings.enabled { settings.capacity } else { 0 };
        Self { capacity, mails: Mutex::default() }
    }

    fn is_enabled(&self) -> bool {
        self.capacity > 0
    }

    /// Stores a mail.
    fn add(&self, to: Vec<String>, content: &[u8], at: Timestamp) {
        let mut mails = self.lock();
        let number = mails.back().map_or(0, |mail| mail.number) + 1;
        if mails.len() >= self.capacity {
            mails.pop_front();
        }
        mails.push_back(read(number, to, content, at));
    }

    /// The mails, oldest first.
    fn all(&self) -> Vec<ReceivedMail> {
        self.lock().iter().cloned().collect()
    }

    fn find(&self, number: u64) -> Option<ReceivedMail> {
        self.lock().iter().find(|mail| mail.number == number).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<ReceivedMail>> {
        self.mails.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(number: u64, to: Vec<String>, content: &[u8], at: Timestamp) -> ReceivedMail {
    let parsed = MessageParser::default().parse(content).unwrap_or_default();
    let body = |text: Option<std::borrow::Cow<'_, str>>| text.unwrap_or_default().into_owned();
    ReceivedMail {
        number,
        at,
        to,
        from: address(parsed.from()),
        reply_to: address(parsed.reply_to()),
        subject: parsed.subject().unwrap_or_default().to_owned(),
        text: body(parsed.body_text(0)),
        html: body(parsed.body_html(0)),
    }
}

/// An address of a header, with its name.
fn address(header: Option<&Address<'_>>) -> String {
    let Some(first) = header.and_then(Address::first) else { return String::new() };
    let email = first.address().unwrap_or_default();
    match first.name() {
        Some(name) => format!("{name} <{email}>"),
        None => email.to_owned(),
    }
}

/// Starts the SMTP server, if it is enabled, on this thread. Returns its address.
pub(crate) fn start(
    settings: &settings::Mail,
    host: IpAddr,
    sandbox: &web::Data<Sandbox>,
) -> anyhow::Result<Option<SocketAddr>> {
    if !settings.enabled {
        return Ok(None);
    }
    let listener = TcpListener::bind((host, settings.port))
        .with_context(|| format!("cannot listen on {host}:{} for mails", settings.port))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    actix_web::rt::spawn(smtp::listen(listener, sandbox.clone()));
    Ok(Some(address))
}
