//! Endpoint checks: sends a sample of each kind, without a delivery in the database, and requests
//! variants.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, post, web};
use bytes::Bytes;
use domain::access::{MerchantId, Scope};
use domain::exchange::{VariantIdentifier, Variants};
use domain::merchant::Interface;
use domain::message_kind::{MessageKind, VARIANTS_API_VERSION};
use futures_util::future::join_all;
use platform::http::ErrorBody;
use platform::identity::Caller;
use platform::{Problem, chain};
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::access::includes;
use super::headers::{HeaderView, request_headers, response_headers};
use super::{Error, parse_merchant, sample::sample};
use crate::Deliveries;
use crate::attempt::{Attempt, Message, MessageFacts, Query, ResponseBody, derived_headers};
use crate::engine::Engine;
use crate::outcome::{Jitter, Outcome};
use crate::store::new_id;

const SAMPLE_SKU: &str = "SAMPLE-SKU";
const MAX_VARIANTS_BYTES: usize = 1024 * 1024;

/// Result of sending one sample, or of requesting variants.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointCheckResult {
    /// Kind of the sample, or `exchange-variants`.
    kind: String,
    /// URL of the endpoint without its query string.
    endpoint: Option<String>,
    /// Whether the endpoint accepted the sample.
    accepted: bool,
    /// `not_set` if the merchant has no such endpoint, `invalid_response` if its variants cannot be
    /// read.
    outcome: String,
    /// HTTP status code of the response.
    status: Option<u16>,
    detail: String,
    /// Headers of the request as sent, by name. Empty if there was no request.
    request_headers: Vec<HeaderView>,
    /// The sample. Empty for variants.
    request_body: String,
    /// Headers of the response, up to 2 KiB. Empty without a response.
    response_headers: Vec<HeaderView>,
    /// First bytes of the response body.
    response_body: String,
    latency_ms: u64,
}

/// The request of a check, apart from the headers that the attempt log contains.
struct SentRequest {
    headers: Vec<(String, String)>,
    body: &'static str,
}

/// Results of an endpoint check, one for each endpoint.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointCheck {
    results: Vec<EndpointCheckResult>,
}

/// Options for an endpoint check.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckOptions {
    /// Only the endpoint of this kind, or `exchange-variants`.
    kind: Option<String>,
    /// Product whose variants are requested; `SAMPLE-SKU` by default.
    sku: Option<String>,
}

/// Check a merchant's endpoints
///
/// Sends a signed sample of each kind that this service delivers, with the event `sample`. Samples
/// are not retried and not stored. The exchange service also requests the variants of a product.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["manage"])), params(("merchant" = String, Path), CheckOptions),
    responses(
        (status = 200, body = EndpointCheck), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    )
)]
#[post("/v1/endpoints/{merchant}/check")]
pub(crate) async fn check_endpoints(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    merchant: web::Path<String>,
    query: web::Query<CheckOptions>,
) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Manage)?;
    let engine = &deliveries.0;
    let merchant = parse_merchant(Some(&merchant))?
        .filter(|merchant| engine.merchants.get(merchant).is_some())
        .filter(|merchant| includes(caller.merchant_scope(), Some(merchant.as_str())))
        .ok_or_else(|| Error::NoMerchant(merchant.into_inner()))?;
    let product = VariantIdentifier::parse(query.sku.as_deref().unwrap_or(SAMPLE_SKU))
        .map_err(|error| Error::Malformed(format!("sku: {error}")))?;
    let messages = engine.kinds.iter().map(|kind| Interface::Message(*kind));
    // The service that places exchange orders also requests variants.
    let variants = engine.kinds.contains(&MessageKind::ExchangeOrder);
    let interfaces = messages
        .chain(variants.then_some(Interface::Variants))
        .filter(|interface| query.kind.as_ref().is_none_or(|kind| kind == interface.name()));
    let checks = interfaces.map(|interface| check(engine, &merchant, interface, &product));
    let results = join_all(checks).await;
    Ok(HttpResponse::Ok().json(EndpointCheck { results }))
}

async fn check(
    engine: &Engine,
    merchant: &MerchantId,
    interface: Interface,
    product: &VariantIdentifier,
) -> EndpointCheckResult {
    let now = engine.clock.now();
    let resolved = match engine.endpoints.find(merchant.as_str(), interface, now) {
        Ok(resolved) => resolved,
        Err(error) => {
            let known = engine.merchants.get(merchant);
            let is_set = known.is_some_and(|known| known.endpoints.contains_key(&interface));
            let outcome = if is_set { "unreachable" } else { "not_set" };
            return EndpointCheckResult::unsent(interface, outcome, chain(&error));
        }
    };
    let mut client = engine.endpoint_client.clone();
    client.timeout = resolved.timeout.unwrap_or(client.timeout).min(engine.check_timeout);
    let (attempt, request) = match interface {
        Interface::Message(kind) => {
            let message = sample_message(merchant, kind, new_id(now));
            let attempt = client.deliver(&message, &resolved.endpoint, now, Jitter::draw()).await.1;
            let request = SentRequest::of_message(&message, kind, &attempt);
            (attempt, request)
        }
        Interface::Variants => {
            let url = match product.expand_url(resolved.endpoint.url()) {
                Ok(url) => url,
                Err(error) => {
                    let why = error.to_string();
                    return EndpointCheckResult::unsent(interface, "unreachable", why);
                }
            };
            let query = Query {
                merchant: merchant.to_string(),
                api_version: VARIANTS_API_VERSION,
                traceparent: platform::telemetry::traceparent(),
                max_response_bytes: MAX_VARIANTS_BYTES,
            };
            let endpoint = resolved.endpoint.with_url(url);
            let attempt = client.fetch(&query, &endpoint, now, Jitter::draw()).await;
            (attempt, SentRequest::of_variants(merchant))
        }
    };
    EndpointCheckResult::sent(interface, resolved.endpoint.url(), attempt, request)
}

fn sample_message(merchant: &MerchantId, kind: MessageKind, id: Uuid) -> Message {
    Message {
        id: id.to_string(),
        merchant: merchant.to_string(),
        kind,
        event: "sample".to_owned(),
        sequence: 1,
        traceparent: platform::telemetry::traceparent(),
        body: Bytes::from_static(sample(kind).as_bytes()),
        response_body: ResponseBody::Ignored,
    }
}

impl SentRequest {
    fn of_message(message: &Message, kind: MessageKind, attempt: &Attempt) -> Self {
        let facts = MessageFacts {
            id: &message.id,
            merchant: &message.merchant,
            event: &message.event,
            sequence: message.sequence,
            body_bytes: message.body.len(),
        };
        let headers = derived_headers(&facts, attempt.started_at);
        Self { headers, body: sample(kind) }
    }

    fn of_variants(merchant: &MerchantId) -> Self {
        let headers = [("accept", "application/json"), ("x-service-id", merchant.as_str())];
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self { headers: headers.map(owned).to_vec(), body: "" }
    }
}

impl EndpointCheckResult {
    fn unsent(interface: Interface, outcome: &str, detail: String) -> Self {
        Self {
            kind: interface.to_string(),
            endpoint: None,
            accepted: false,
            outcome: outcome.to_owned(),
            status: None,
            detail,
            request_headers: Vec::new(),
            request_body: String::new(),
            response_headers: Vec::new(),
            response_body: String::new(),
            latency_ms: 0,
        }
    }

    fn sent(interface: Interface, url: &Url, attempt: Attempt, request: SentRequest) -> Self {
        let is_delivered = matches!(attempt.outcome, Outcome::Delivered { .. });
        let unreadable = match interface {
            Interface::Variants if is_delivered => Variants::read(&attempt.response).err(),
            _ => None,
        };
        let (outcome, detail) = match &unreadable {
            Some(error) => ("invalid_response", chain(error)),
            None => (attempt.outcome.name(), attempt.outcome.detail()),
        };
        let request_headers = request_headers(&attempt.headers.request, request.headers);
        let was_sent = !request_headers.is_empty();
        // The query string may hold a secret.
        let mut url = url.clone();
        url.set_query(None);
        Self {
            kind: interface.to_string(),
            endpoint: Some(url.to_string()),
            accepted: is_delivered && unreadable.is_none(),
            outcome: outcome.to_owned(),
            status: attempt.outcome.status(),
            detail,
            request_headers,
            request_body: if was_sent { request.body.to_owned() } else { String::new() },
            response_headers: response_headers(&attempt.headers.response),
            response_body: attempt.response_log,
            latency_ms: attempt.latency.as_millis().try_into().unwrap_or(u64::MAX),
        }
    }
}
