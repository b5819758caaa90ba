//! Headers of the requests to merchants.

use chrono::{DateTime, Utc};
use domain::labels::MAX_LABEL_RESPONSE_BYTES;
use domain::message_kind::MessageKind;
use platform::signing;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::{Message, Query, ResponseBody};
use crate::client::MAX_RESPONSE_BYTES;
use crate::endpoint::Endpoint;
use crate::outcome::Outcome;

#[derive(Clone, Copy)]
pub(super) enum Call<'a> {
    Deliver(&'a Message),
    Fetch(&'a Query),
}

pub(super) const EVENT: HeaderName = HeaderName::from_static("x-service-event");
pub(super) const SEQUENCE: HeaderName = HeaderName::from_static("x-service-sequence");
const API_VERSION: HeaderName = HeaderName::from_static("x-service-api-version");
pub(super) const SERVICE_ID: HeaderName = HeaderName::from_static("x-service-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl Call<'_> {
    pub(super) fn response_body(self) -> ResponseBody {
        match self {
            Self::Deliver(message) => message.response_body,
            Self::Fetch(_) => ResponseBody::Required,
        }
    }

    /// The bytes of a response with this outcome that are read.
    pub(super) fn max_response_bytes(self, outcome: &Outcome) -> usize {
        match self {
            Self::Deliver(message)
                if has_documents(message) && matches!(outcome, Outcome::Delivered { .. }) =>
            {
                MAX_LABEL_RESPONSE_BYTES
            }
            Self::Deliver(_) => MAX_RESPONSE_BYTES,
            Self::Fetch(query) => query.max_response_bytes,
        }
    }

    /// Whether the response can contain a document, which may be long and shows a shopper's address.
    pub(super) fn has_documents(self) -> bool {
        matches!(self, Self::Deliver(message) if has_documents(message))
    }

    pub(super) fn headers(
        self,
        endpoint: &Endpoint,
        at: DateTime<Utc>,
    ) -> Result<HeaderMap, header::InvalidHeaderValue> {
        let (merchant, version, traceparent) = match self {
            Self::Deliver(message) => (&message.merchant, message.version, &message.traceparent),
            Self::Fetch(query) => (&query.merchant, query.version, &query.traceparent),
        };
        let mut headers = endpoint.headers().clone();
        headers.insert(header::ACCEPT, JSON);
        headers.insert(SERVICE_ID, HeaderValue::from_str(merchant)?);
        headers.insert(API_VERSION, HeaderValue::from(version.0));
        if let Some(traceparent) = traceparent {
            headers.insert(TRACEPARENT, HeaderValue::from_str(traceparent)?);
        }
        if let Self::Deliver(message) = self {
            insert_webhook_headers(&mut headers, message, endpoint, at)?;
        }
        Ok(headers)
    }
}

fn has_documents(message: &Message) -> bool {
    message.kind == MessageKind::LabelRequest
}

fn insert_webhook_headers(
    headers: &mut HeaderMap,
    message: &Message,
    endpoint: &Endpoint,
    at: DateTime<Utc>,
) -> Result<(), header::InvalidHeaderValue> {
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(EVENT, HeaderValue::from_str(&message.event)?);
    headers.insert(SEQUENCE, HeaderValue::from(message.sequence));
    headers.insert(signing::ID_HEADER, HeaderValue::from_str(&message.id)?);
    headers.insert(signing::TIMESTAMP_HEADER, HeaderValue::from(at.timestamp()));
    // A label costs money, so it must be made once. The id of the message is also that of the request.
    if message.kind == MessageKind::LabelRequest {
        headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_str(&message.id)?);
    }
    if !endpoint.secrets().is_empty() {
        let signature = signing::sign(endpoint.secrets(), &message.id, at, &message.body);
        headers.insert(signing::SIGNATURE_HEADER, HeaderValue::from_str(&signature)?);
    }
    Ok(())
}
