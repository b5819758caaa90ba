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
use platform::identity::{Access, Caller};
use platform::{Problem, chain};
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{Error, parse_merchant, sample::sample};
use crate::Deliveries;
use crate::attempt::{Attempt, Message, Query, ResponseBody};
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
    /// First bytes of the response body.
    response_body: String,
    latency_ms: u64,
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
    /// Product whose variants are requested; `SAMPLE-SKU` by default.
    sku: Option<String>,
}

/// Check a merchant's endpoints
///
/// Sends a signed sample of each kind that this service delivers, with the event `sample`. Samples
/// are not retried and not stored. The exchange service also requests the variants of a product.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["operator"])), params(("merchant" = String, Path), CheckOptions),
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
    caller.require(Scope::Operator)?;
    let engine = &deliveries.0;
    let merchant = parse_merchant(Some(&merchant))?
        .filter(|merchant| engine.merchants.get(merchant).is_some())
        .ok_or_else(|| Error::NoMerchant(merchant.into_inner()))?;
    match caller.merchant_scope() {
        Some(limit) if *limit != merchant => {
            return Err(Access::OtherMerchant(limit.clone()).into());
        }
        _ => {}
    }
    let product = VariantIdentifier::parse(query.sku.as_deref().unwrap_or(SAMPLE_SKU))
        .map_err(|error| Error::Malformed(format!("sku: {error}")))?;
    let messages = engine.kinds.iter().map(|kind| Interface::Message(*kind));
    // The service that places exchange orders also requests variants.
    let variants = engine.kinds.contains(&MessageKind::ExchangeOrder);
    let interfaces = messages.chain(variants.then_some(Interface::Variants));
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
    let attempt = match interface {
        Interface::Message(kind) => {
            let message = sample_message(merchant, kind, new_id(now));
            client.deliver(&message, &resolved.endpoint, now, Jitter::draw()).await.1
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
            client.fetch(&query, &resolved.endpoint.with_url(url), now, Jitter::draw()).await
        }
    };
    EndpointCheckResult::sent(interface, resolved.endpoint.url(), attempt)
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

impl EndpointCheckResult {
    fn unsent(interface: Interface, outcome: &str, detail: String) -> Self {
        Self {
            kind: interface.to_string(),
            endpoint: None,
            accepted: false,
            outcome: outcome.to_owned(),
            status: None,
            detail,
            response_body: String::new(),
            latency_ms: 0,
        }
    }

    fn sent(interface: Interface, url: &Url, attempt: Attempt) -> Self {
        let is_delivered = matches!(attempt.outcome, Outcome::Delivered { .. });
        let unreadable = match interface {
            Interface::Variants if is_delivered => Variants::read(&attempt.response).err(),
            _ => None,
        };
        let (outcome, detail) = match &unreadable {
            Some(error) => ("invalid_response", chain(error)),
            None => (attempt.outcome.name(), attempt.outcome.detail()),
        };
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
            response_body: attempt.response_log,
            latency_ms: attempt.latency.as_millis().try_into().unwrap_or(u64::MAX),
        }
    }
}
