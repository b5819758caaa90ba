//! Notices: messages to a merchant about its own endpoints.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::mail::{Mail, escape_html};
use crate::merchant::Interface;

crate::words! {
    /// The event of a notice, also in its header `X-Service-Event`.
    pub enum NoticeEvent as "kebab-case" {
        /// An endpoint has been failing for some minutes.
        #[serde(rename = "endpoint.failing")]
        #[strum(serialize = "endpoint.failing")]
        EndpointFailing,
        /// An endpoint was paused.
        #[serde(rename = "endpoint.disabled")]
        #[strum(serialize = "endpoint.disabled")]
        EndpointDisabled,
        /// A failing endpoint accepts messages again.
        #[serde(rename = "endpoint.recovered")]
        #[strum(serialize = "endpoint.recovered")]
        EndpointRecovered,
        /// Messages could not be delivered.
        #[serde(rename = "delivery.dead")]
        #[strum(serialize = "delivery.dead")]
        DeliveryDead,
    }
}

impl NoticeEvent {
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The event that this one takes back: of a failure and a recovery that are not told yet, neither is told.
    pub fn opposite(self) -> Option<Self> {
        match self {
            Self::EndpointFailing => Some(Self::EndpointRecovered),
            Self::EndpointRecovered => Some(Self::EndpointFailing),
            Self::EndpointDisabled | Self::DeliveryDead => None,
        }
    }
}

/// The number of facts with a status code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusCount {
    /// The HTTP status code of the last failed attempt; null if the endpoint did not respond.
    pub status: Option<u16>,
    pub count: u64,
}

/// Facts of one event about one endpoint, which its merchant is told together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeFacts {
    pub count: u64,
    pub first_at: DateTime<Utc>,
    pub last_at: DateTime<Utc>,
    /// By status code.
    pub statuses: Vec<StatusCount>,
}

impl NoticeFacts {
    /// One fact without a status code.
    pub fn without_status(at: DateTime<Utc>) -> Self {
        Self { count: 1, first_at: at, last_at: at, statuses: Vec::new() }
    }

    /// One fact.
    pub fn one(at: DateTime<Utc>, status: Option<u16>) -> Self {
        let statuses = vec![StatusCount { status, count: 1 }];
        Self { count: 1, first_at: at, last_at: at, statuses }
    }

    /// Adds other facts of the same event about the same endpoint.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.first_at = self.first_at.min(other.first_at);
        self.last_at = self.last_at.max(other.last_at);
        for new in &other.statuses {
            match self.statuses.iter_mut().find(|known| known.status == new.status) {
                Some(known) => known.count += new.count,
                None => self.statuses.push(new.clone()),
            }
        }
        self.statuses.sort_by_key(|known| known.status);
    }
}

/// A message to a merchant about one of its endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Notice {
    /// A sentence for people. Servers of chats show a field of this name.
    pub text: String,
    pub event: NoticeEvent,
    /// The interface of the endpoint.
    #[schema(value_type = String, example = "rma")]
    pub interface: Interface,
    /// The number of messages that could not be delivered, or of failures or pauses of the endpoint.
    pub count: u64,
    /// The time of the first of them. Of a failure, the time at which it began.
    pub first_at: DateTime<Utc>,
    /// The time of the last of them. Of a recovery, the time of the first success.
    pub last_at: DateTime<Utc>,
    /// The status codes of the last attempts that failed. None if the endpoint was paused.
    pub statuses: Vec<StatusCount>,
    /// The page of the console that shows more.
    #[schema(
        example = "https://console.backhaul.example/deliveries?merchant=acme&kind=rma&state=dead"
    )]
    pub console_url: String,
}

impl Notice {
    pub fn new(
        event: NoticeEvent,
        interface: Interface,
        facts: NoticeFacts,
        console_url: String,
    ) -> Self {
        let text = text(event, interface, &facts);
        let NoticeFacts { count, first_at, last_at, statuses } = facts;
        Self { text, event, interface, count, first_at, last_at, statuses, console_url }
    }

    /// The notice as a mail to a contact of the merchant with this name.
    pub fn mail(&self, merchant: &str, to: &str) -> Mail {
        let Self { text, event, interface, console_url, .. } = self;
        let subject = match event {
            NoticeEvent::EndpointFailing => "fails",
            NoticeEvent::EndpointDisabled => "was paused",
            NoticeEvent::EndpointRecovered => "works again",
            NoticeEvent::DeliveryDead => "did not accept messages",
        };
        let reason =
            format!("You get this mail because you are the support contact of {merchant}.");
        let [text_in_html, url_in_html, reason_in_html] =
            [text, console_url, &reason].map(|text| escape_html(text));
        Mail {
            to: to.to_owned(),
            from_name: None,
            reply_to: None,
            subject: format!("{merchant}: endpoint {interface} {subject}"),
            text: format!("{text}\n\n{console_url}\n\n-- \n{reason}\n"),
            html: format!(
                "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
                 <meta name=\"color-scheme\" content=\"light dark\"><title></title></head>\
                 <body style=\"font-family:sans-serif;line-height:1.5;max-width:600px;margin:0 auto;\
                 padding:16px\"><p>{text_in_html}</p><p><a href=\"{url_in_html}\">Open the console</a></p>\
                 <p style=\"font-size:13px\">{reason_in_html}</p></body></html>"
            ),
        }
    }
}

/// The sentence of a notice.
fn text(event: NoticeEvent, interface: Interface, facts: &NoticeFacts) -> String {
    let statuses = statuses(&facts.statuses);
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let (first_at, last_at) = (time(facts.first_at), time(facts.last_at));
    match (event, facts.count) {
        (NoticeEvent::EndpointFailing, _) => format!(
            "Your endpoint {interface} has accepted no message since {first_at} ({statuses}). \
             Its messages wait and are retried."
        ),
        (NoticeEvent::EndpointDisabled, _) => format!(
            "Your endpoint {interface} was paused at {last_at}. Its messages wait until it is \
             resumed."
        ),
        (NoticeEvent::EndpointRecovered, _) => format!(
            "Your endpoint {interface} accepts messages again since {last_at}. It had failed since \
             {first_at}."
        ),
        (NoticeEvent::DeliveryDead, 1) => format!(
            "Your endpoint {interface} did not accept a message, which was given up at {last_at} \
             ({statuses})."
        ),
        (NoticeEvent::DeliveryDead, count) => format!(
            "Your endpoint {interface} did not accept {count} messages, the last of which was \
             given up at {last_at} ({statuses})."
        ),
    }
}

/// The status codes in words, for example `status 503: 12, no response: 1`.
fn statuses(statuses: &[StatusCount]) -> String {
    let words = |StatusCount { status, count }: &StatusCount| match status {
        Some(status) => format!("status {status}: {count}"),
        None => format!("no response: {count}"),
    };
    statuses.iter().map(words).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
