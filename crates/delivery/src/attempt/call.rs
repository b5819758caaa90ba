//! What a request carries: the headers of a message, and of a question.

use chrono::{DateTime, Utc};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::{Message, Query, Reply};
use crate::client::ANSWER_LIMIT;
use crate::endpoint::Endpoint;
use crate::signing;

#[derive(Clone, Copy)]
pub(super) enum Call<'a> {
    Deliver(&'a Message),
    Ask(&'a Query),
}

const EVENT: HeaderName = HeaderName::from_static("x-service-event");
const SEQUENCE: HeaderName = HeaderName::from_static("x-service-sequence");
const API_VERSION: HeaderName = HeaderName::from_static("x-service-api-version");
const SERVICE_ID: HeaderName = HeaderName::from_static("x-service-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl Call<'_> {
    pub(super) fn reply(self) -> Reply {
        match self {
            Self::Deliver(message) => message.reply,
            Self::Ask(_) => Reply::Needed,
        }
    }

    pub(super) fn longest_answer(self) -> usize {
        match self {
            Self::Deliver(_) => ANSWER_LIMIT,
            Self::Ask(question) => question.longest_answer,
        }
    }

    pub(super) fn headers(
        self,
        endpoint: &Endpoint,
        at: DateTime<Utc>,
    ) -> Result<HeaderMap, header::InvalidHeaderValue> {
        let (merchant, api_version, traceparent) = match self {
            Self::Deliver(message) => {
                (&message.merchant, message.kind.api_version(), &message.traceparent)
            }
            Self::Ask(question) => {
                (&question.merchant, question.api_version, &question.traceparent)
            }
        };
        let mut headers = endpoint.headers().clone();
        headers.insert(header::ACCEPT, JSON);
        headers.insert(SERVICE_ID, HeaderValue::from_str(merchant)?);
        headers.insert(API_VERSION, HeaderValue::from_static(api_version));
        if let Some(traceparent) = traceparent {
            headers.insert(TRACEPARENT, HeaderValue::from_str(traceparent)?);
        }
        if let Self::Deliver(message) = self {
            envelope(&mut headers, message, endpoint, at)?;
        }
        Ok(headers)
    }
}

/// What a message carries beyond what every request does.
fn envelope(
    headers: &mut HeaderMap,
    message: &Message,
    endpoint: &Endpoint,
    at: DateTime<Utc>,
) -> Result<(), header::InvalidHeaderValue> {
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(EVENT, HeaderValue::from_str(&message.event)?);
    headers.insert(SEQUENCE, HeaderValue::from(message.sequence));
    headers.insert(signing::ID, HeaderValue::from_str(&message.id)?);
    headers.insert(signing::TIMESTAMP, HeaderValue::from(at.timestamp()));
    if !endpoint.secrets().is_empty() {
        let signature = signing::sign(endpoint.secrets(), &message.id, at, &message.body);
        headers.insert(signing::SIGNATURE, HeaderValue::from_str(&signature)?);
    }
    Ok(())
}
