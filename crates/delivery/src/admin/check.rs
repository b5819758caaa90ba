//! Trying a merchant's endpoints with a sample of each kind, outside the ledger.

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

use super::list::merchant_id;
use super::{Refused, sample::sample};
use crate::Deliveries;
use crate::attempt::{Message, Reply};
use crate::engine::Engine;
use crate::ledger::new_id;
use crate::outcome::Jitter;

/// What came of one sample.
#[derive(Serialize, ToSchema)]
pub(crate) struct Checked {
    kind: String,
    /// Where it was sent, as far as the address is known.
    endpoint: Option<String>,
    /// Whether the merchant took it.
    accepted: bool,
    /// `not_set` where the merchant has no such endpoint.
    outcome: String,
    status: Option<u16>,
    detail: String,
    /// The start of the answer.
    answer: String,
    latency_ms: u64,
}

/// What came of a sample of each kind.
#[derive(Serialize, ToSchema)]
pub(crate) struct Check {
    results: Vec<Checked>,
}

/// Check a merchant's endpoints
///
/// Sends a signed sample of each kind that this service delivers, and says what came of it. Samples
/// are not retried and not logged; their event is `sample`.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = [])), params(("merchant" = String, Path)),
    responses(
        (status = 200, body = Check), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
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
    let merchant = merchant_id(Some(&merchant))?
        .filter(|merchant| engine.merchants.get(merchant).is_some())
        .ok_or_else(|| Refused::NoMerchant(merchant.into_inner()))?;
    match caller.merchant_scope() {
        Some(limit) if *limit != merchant => {
            return Err(Access::OtherMerchant(limit.clone()).into());
        }
        _ => {}
    }
    let results = join_all(engine.kinds.iter().map(|kind| check(engine, &merchant, *kind))).await;
    Ok(HttpResponse::Ok().json(Check { results }))
}

async fn check(engine: &Engine, merchant: &MerchantId, kind: MessageKind) -> Checked {
    let now = engine.clock.now();
    let interface = Interface::Message(kind);
    let opened = match engine.endpoints.find(merchant.as_str(), interface, now) {
        Ok(opened) => opened,
        Err(error) => {
            let known = engine.merchants.get(merchant);
            let is_set = known.is_some_and(|known| known.endpoints.contains_key(&interface));
            return Checked {
                kind: kind.to_string(),
                endpoint: None,
                accepted: false,
                outcome: if is_set { "unreachable" } else { "not_set" }.to_owned(),
                status: None,
                detail: chain(&error),
                answer: String::new(),
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
        reply: Reply::Ignored,
    };
    let mut endpoint_client = engine.endpoint_client.clone();
    endpoint_client.deadline =
        opened.timeout.unwrap_or(endpoint_client.deadline).min(engine.check_deadline);
    let tried =
        endpoint_client.attempt(&message, &opened.endpoint, 1, now, Jitter::draw()).await.last;
    let start = tried.answer.get(..engine.settings.response_log_bytes).unwrap_or(&tried.answer);
    // What follows the path may be a secret.
    let mut url = opened.endpoint.url().clone();
    url.set_query(None);
    Checked {
        kind: kind.to_string(),
        endpoint: Some(url.to_string()),
        accepted: tried.outcome.name() == "delivered",
        outcome: tried.outcome.name().to_owned(),
        status: tried.outcome.status(),
        detail: tried.outcome.detail(),
        answer: String::from_utf8_lossy(start).into_owned(),
        latency_ms: tried.latency.as_millis().try_into().unwrap_or(u64::MAX),
    }
}
