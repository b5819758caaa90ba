//! The result of checking one endpoint.

use api::delivery::{EndpointCheckResult, RefusedPart};
use domain::access::MerchantId;
use domain::exchange::Variants;
use domain::merchant::Interface;
use platform::chain;
use url::Url;

use super::headers::{request_headers, response_headers};
use super::refusal::{CheckedResponse, reason, remedy};
use crate::attempt::{Attempt, Message, MessageFacts, derived_headers, parse_headers};
use crate::outcome::Outcome;

/// The request of a check, apart from the headers that the attempt log contains.
pub(super) struct SentRequest {
    headers: Vec<(String, String)>,
    body: String,
    /// Whether the settings of the endpoint have credentials.
    has_credentials: bool,
}

impl SentRequest {
    pub(super) fn of_message(message: &Message, attempt: &Attempt, has_credentials: bool) -> Self {
        let facts = MessageFacts {
            id: &message.id,
            merchant: &message.merchant,
            event: &message.event,
            sequence: message.sequence,
            body_bytes: message.body.len(),
        };
        let headers = derived_headers(&facts, attempt.started_at);
        let body = String::from_utf8_lossy(&message.body).into_owned();
        Self { headers, body, has_credentials }
    }

    pub(super) fn of_variants(merchant: &MerchantId, has_credentials: bool) -> Self {
        let headers = [("accept", "application/json"), ("x-service-id", merchant.as_str())];
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self { headers: headers.map(owned).to_vec(), body: String::new(), has_credentials }
    }
}

/// The status of the response if this is an accepted sample of the kind.
pub(super) fn accepted_sample(result: &EndpointCheckResult, kind: &str) -> Option<i32> {
    result.status.filter(|_| result.accepted && result.kind == kind).map(i32::from)
}

pub(super) fn unsent(interface: Interface, outcome: &str, detail: String) -> EndpointCheckResult {
    EndpointCheckResult {
        kind: interface.to_string(),
        outcome: outcome.to_owned(),
        detail,
        ..EndpointCheckResult::default()
    }
}

pub(super) fn sent(
    interface: Interface,
    mut url: Url,
    attempt: Attempt,
    request: SentRequest,
) -> EndpointCheckResult {
    let is_delivered = matches!(attempt.outcome, Outcome::Delivered { .. });
    let (unreadable, warnings) = match interface {
        Interface::Variants if is_delivered => {
            let read = Variants::read(&attempt.response);
            match read.and_then(|_| Variants::warnings(&attempt.response)) {
                Ok(warnings) => (None, warnings),
                Err(error) => (Some(error), Vec::new()),
            }
        }
        _ => (None, Vec::new()),
    };
    let outcome = attempt.outcome.name();
    let status = attempt.outcome.status();
    let refused = refused_part(interface, &attempt, request.has_credentials);
    let (outcome, detail) = match (&unreadable, refused, status) {
        (Some(error), ..) => ("invalid_response", chain(error)),
        (None, Some(part), Some(status)) => {
            let reason = reason(part, request.has_credentials);
            (outcome, format!("responded with {status}: {reason}"))
        }
        (None, ..) => (outcome, attempt.outcome.detail()),
    };
    let request_headers = request_headers(&attempt.headers.request, request.headers);
    let response_headers = response_headers(&attempt.headers.response);
    let was_sent = !request_headers.is_empty();
    // The query string may hold a secret.
    url.set_query(None);
    EndpointCheckResult {
        kind: interface.to_string(),
        endpoint: Some(url.to_string()),
        accepted: is_delivered && unreadable.is_none(),
        outcome: outcome.to_owned(),
        status,
        detail,
        refused,
        remedy: refused.map(|part| remedy(part, request.has_credentials).to_owned()),
        request_headers,
        request_body: if was_sent { request.body } else { String::new() },
        response_headers,
        response_body: attempt.response_log,
        latency_ms: attempt.latency.as_millis().try_into().unwrap_or(u64::MAX),
        warnings,
    }
}

/// The part that the endpoint refused. Requests for variants have no signature.
fn refused_part(
    interface: Interface,
    attempt: &Attempt,
    has_credentials: bool,
) -> Option<RefusedPart> {
    let headers = &attempt.headers.response;
    let response = CheckedResponse {
        status: attempt.outcome.status(),
        has_credentials,
        asks_for_credentials: parse_headers(headers).any(|(name, _)| name == "www-authenticate"),
        body: &attempt.response_log,
    };
    match interface {
        Interface::Variants => response.is_refusal().then_some(RefusedPart::Credentials),
        Interface::Message(_) => response.part(),
    }
}
