//! Mails: the second transport of messages, over SMTP.
//!
//! A mail is a message of the kind `mail`. Its body has the recipient and the texts; the mail is made from it in each
//! attempt, the same each time: its date and its `Message-ID` follow from the id of the message, so that a repeated mail
//! can be recognised. The attempt ends with an [`Outcome`], as an HTTP request does.
//!
//! See docs/decisions/mail.md.

mod pace;
mod settings;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use domain::erasure::ERASED_EMAIL;
use domain::mail::Mail;
use domain::printable::printable;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::{self, response::Response};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use platform::{Timestamp, chain};
use secrecy::ExposeSecret;
use tokio::time::Instant;
use uuid::Uuid;

use crate::attempt::{Attempt, LoggedHeaders, Message};
use crate::outcome::Outcome;
use pace::Pace;

pub use settings::MailSettings;

const MAX_SUBJECT_CHARS: usize = 200;
const MAX_NAME_CHARS: usize = 100;
/// The part of a response that the log keeps.
const MAX_LOGGED_CHARS: usize = 500;
/// The time within which the server must respond to one command. The attempt has a timeout of its own.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// Refusals of credentials. The settings are wrong and not the mail, so it is retried.
const CREDENTIALS_REFUSED: [u16; 4] = [530, 534, 535, 538];

/// A mail that cannot be sent, whatever the server says.
#[derive(Debug, thiserror::Error)]
enum MailError {
    #[error("the message is no mail")]
    Body(#[from] serde_json::Error),
    #[error("the address of the recipient or for replies is not valid")]
    Address(#[from] lettre::address::AddressError),
    #[error("the shopper was erased")]
    Erased,
    #[error("the mail cannot be built")]
    Build(#[from] lettre::error::Error),
    #[error("the id {0} has no time")]
    Id(String),
}

/// Sends mails. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    pace: Arc<Mutex<Pace>>,
}

impl Mailer {
    /// The mailer of these settings; `None` if no mails are sent.
    pub fn new(settings: &MailSettings) -> anyhow::Result<Option<Self>> {
        if !settings.is_set() {
            return Ok(None);
        }
        let url = settings.url.expose_secret();
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)?
            .timeout(Some(COMMAND_TIMEOUT))
            .build();
        let now = std::time::Instant::now();
        let pace = Pace::new(settings.max_per_second, settings.max_per_domain, now);
        let pace = Arc::new(Mutex::new(pace));
        Ok(Some(Self { transport, from: settings.from.parse()?, pace }))
    }

    /// Whether the limits allow to send a mail now. A body that is no mail needs no permission: it is not sent.
    pub(crate) fn may_send(&self, body: &[u8]) -> bool {
        let Ok(mail) = serde_json::from_slice::<Mail>(body) else { return true };
        let domain = mail.to.rsplit('@').next().unwrap_or_default();
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.try_send(domain, std::time::Instant::now())
    }

    /// Sends a mail.
    pub async fn deliver(
        &self,
        message: &Message,
        started_at: Timestamp,
        timeout: Duration,
    ) -> Attempt {
        let started = Instant::now();
        let mail = match self.build(message) {
            Ok(mail) => mail,
            Err(error) => {
                let outcome = Outcome::MailRefused { status: None, text: chain(&error) };
                return attempt(outcome, started_at, started, String::new());
            }
        };
        let to = mail.envelope().to().first().map(Address::to_string).unwrap_or_default();
        match tokio::time::timeout(timeout, self.transport.send(mail)).await {
            Err(_elapsed) => attempt(Outcome::TimedOut, started_at, started, String::new()),
            Ok(Err(error)) => attempt(outcome_of(&error, &to), started_at, started, String::new()),
            Ok(Ok(response)) => {
                let outcome = Outcome::Delivered { status: u16::from(response.code()) };
                attempt(outcome, started_at, started, log_of(&response))
            }
        }
    }

    /// Makes the mail of a message.
    fn build(&self, message: &Message) -> Result<lettre::Message, MailError> {
        let mail: Mail = serde_json::from_slice(&message.body)?;
        if mail.to == ERASED_EMAIL {
            return Err(MailError::Erased);
        }
        let to: Address = mail.to.parse()?;
        let from = self.sender(&mail);
        let date = time_of(&message.id).ok_or_else(|| MailError::Id(message.id.clone()))?;
        let domain = self.from.email.domain();
        let auto_submitted = HeaderName::new_from_ascii_str("Auto-Submitted");
        let auto_submitted = HeaderValue::new(auto_submitted, "auto-generated".to_owned());
        let parts = MultiPart::alternative()
            .boundary(format!("backhaul-{}", message.id))
            .singlepart(SinglePart::plain(mail.text))
            .singlepart(SinglePart::html(mail.html));
        let mut builder = lettre::Message::builder().from(from).to(Mailbox::new(None, to));
        if let Some(reply_to) = &mail.reply_to {
            builder = builder.reply_to(Mailbox::new(None, reply_to.parse()?));
        }
        Ok(builder
            .subject(header_text(&mail.subject, MAX_SUBJECT_CHARS))
            .message_id(Some(format!("<{}@{domain}>", message.id)))
            .date(date)
            .raw_header(auto_submitted)
            .multipart(parts)?)
    }

    /// The sender: the address of the installation, and the name that the mail gives.
    fn sender(&self, mail: &Mail) -> Mailbox {
        let own = mail.from_name.as_deref().filter(|name| !name.trim().is_empty());
        let own = own.map(|name| header_text(name, MAX_NAME_CHARS));
        Mailbox::new(own.or_else(|| self.from.name.clone()), self.from.email.clone())
    }
}

/// A text for a header, without line breaks, which could add another one, and not too long.
fn header_text(text: &str, max_chars: usize) -> String {
    printable(text).chars().take(max_chars).collect()
}

/// The text of a server without the recipient: the reasons of failures are kept after an erasure.
fn without_recipient(text: &str, to: &str) -> String {
    let local_part = to.rsplit_once('@').map_or(to, |(local_part, _)| local_part);
    let is_recipient = |word: &str| {
        let word = word.trim_matches(|c: char| "<>()[]{}:;,.'\"".contains(c));
        [to, local_part].iter().any(|it| word.eq_ignore_ascii_case(it))
    };
    let words = text.split(' ').map(|word| if is_recipient(word) { "(recipient)" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// The time at which a message was created, which its id has.
fn time_of(id: &str) -> Option<SystemTime> {
    let (seconds, _) = id.parse::<Uuid>().ok()?.get_timestamp()?.to_unix();
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

fn attempt(
    outcome: Outcome,
    started_at: Timestamp,
    started: Instant,
    response_log: String,
) -> Attempt {
    Attempt {
        signal: outcome.signal(),
        outcome,
        started_at,
        latency: started.elapsed(),
        response: Bytes::new(),
        response_log,
        headers: LoggedHeaders::default(),
    }
}

/// The text of the server, for example with the number of the mail in its queue.
fn log_of(response: &Response) -> String {
    let text = response.message().collect::<Vec<_>>().join(" ");
    printable(&text).chars().take(MAX_LOGGED_CHARS).collect()
}

fn outcome_of(error: &smtp::Error, to: &str) -> Outcome {
    // The text has the status and the line of the server, and no credentials.
    let text = without_recipient(&printable(&chain(error)), to);
    match error.status().map(u16::from) {
        Some(status @ 500..) if !CREDENTIALS_REFUSED.contains(&status) => {
            Outcome::MailRefused { status: Some(status), text }
        }
        Some(status) => Outcome::MailDeferred { status, text },
        None if error.is_timeout() => Outcome::TimedOut,
        None => Outcome::Unreachable(text),
    }
}

#[cfg(test)]
mod tests;
