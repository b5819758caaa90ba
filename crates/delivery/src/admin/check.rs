//! Endpoint checks: sends a sample of each kind, without a delivery in the database.

use actix_web::{HttpResponse, post, web};
use bytes::Bytes;
use domain::access::{MerchantId, Scope};
use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use futures_util::future::join_all;
use platform::http::ErrorBody;
use platform::identity::{Access, Caller};
use platform::{Problem, chain};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Error, parse_merchant, sample::sample};
use crate::Deliveries;
use crate::attempt::{Message, ResponseBody};
use crate::engine::Engine;
use crate::outcome::Jitter;
use crate::store::new_id;

/// Result of sending one sample.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointCheckResult {
    kind: String,
    /// URL of the endpoint without its query string.
    endpoint: Option<String>,
    /// Whether the endpoint accepted the sample.
    accepted: bool,
    /// `not_set` if the merchant has no such endpoint.
    outcome: String,
    /// HTTP status code of the response.
    status: Option<u16>,
    detail: String,
    /// First bytes of the response body.
    response_body: String,
    latency_ms: u64,
}

/// Results of an endpoint check, one for each kind.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointCheck {
    results: Vec<EndpointCheckResult>,
}

/// Check a merchant's endpoints
///
/// Sends a signed sample of each kind that this service delivers, with the event `sample`. Samples
/// are not retried and not stored.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = [])), params(("merchant" = String, Path)),
    responses(
        (status = 200, body = EndpointCheck), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    )
)]
#[post("/v1/endpoints/{merchant}/check")]
pub(crate) async fn check_endpoints(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    merchant: web::Path<String>,
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
    let results = join_all(engine.kinds.iter().map(|kind| check(engine, &merchant, *kind))).await;
    Ok(HttpResponse::Ok().json(EndpointCheck { results }))
}

async fn check(engine: &Engine, merchant: &MerchantId, kind: MessageKind) -> EndpointCheckResult {
    let now = engine.clock.now();
    let interface = Interface::Message(kind);
    let resolved = match engine.endpoints.find(merchant.as_str(), interface, now) {
        Ok(resolved) => resolved,
        Err(error) => {
            let known = engine.merchants.get(merchant);
            let is_set = known.is_some_and(|known| known.endpoints.contains_key(&interface));
            return EndpointCheckResult {
                kind: kind.to_string(),
                endpoint: None,
                accepted: false,
                outcome: if is_set { "unreachable" } else { "not_set" }.to_owned(),
                status: None,
                detail: chain(&error),
                response_body: String::new(),
                latency_ms: 0,
            };
        }
    };
    let message = Message {
        id: new_id(now).to_string(),
        merchant: merchant.to_string(),
        kind,
        event: "sample".to_owned(),
        sequence: 1,
        traceparent: platform::telemetry::traceparent(),
        body: Bytes::from_static(sample(kind).as_bytes()),
        response_body: ResponseBody::Ignored,
    };
    let mut endpoint_client = engine.endpoint_client.clone();
    endpoint_client.timeout =
        resolved.timeout.unwrap_or(endpoint_client.timeout).min(engine.check_timeout);
    let (_, mut attempt) =
        endpoint_client.deliver(&message, &resolved.endpoint, now, Jitter::draw()).await;
    attempt.truncate_response(engine.settings.response_log_bytes);
    // The query string may hold a secret.
    let mut url = resolved.endpoint.url().clone();
    url.set_query(None);
    EndpointCheckResult {
        kind: kind.to_string(),
        endpoint: Some(url.to_string()),
        accepted: attempt.outcome.name() == "delivered",
        outcome: attempt.outcome.name().to_owned(),
        status: attempt.outcome.status(),
        detail: attempt.outcome.detail(),
        response_body: String::from_utf8_lossy(&attempt.response).into_owned(),
        latency_ms: attempt.latency.as_millis().try_into().unwrap_or(u64::MAX),
    }
}
