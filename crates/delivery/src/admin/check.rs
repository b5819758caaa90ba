//! Endpoint checks: sends a sample of each kind, without a delivery in the database, and requests
//! variants.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, post, web};
use api::delivery::{EndpointCheck, EndpointCheckResult};
use bytes::Bytes;
use chrono::TimeDelta;
use domain::access::{MerchantId, Scope};
use domain::exchange::VariantIdentifier;
use domain::labels::{BoughtLabel, LABEL_REQUESTED};
use domain::merchant::{Authentication, Interface};
use domain::message_kind::{MessageKind, MessageVersion};
use domain::samples::{SampleEvent, sample};
use futures_util::future::try_join_all;
use merchants::Merchants;
use platform::http::{self};
use platform::identity::Caller;
use platform::{Problem, Timestamp, chain, database::DatabaseError};
use serde::Deserialize;
use utoipa::IntoParams;

use super::access::includes;
use super::check_result::{SentRequest, accepted_sample, sent, unsent};
use super::{Error, parse_merchant};
use crate::Deliveries;
use crate::attempt::{Message, Query, ResponseBody};
use crate::endpoint::Endpoint;
use crate::engine::Engine;
use crate::outcome::{Jitter, Outcome};
use crate::store::{SampleRequest, insert_sample_request, new_id, record_samples};

const SAMPLE_SKU: &str = "SAMPLE-SKU";
/// The event of a sample of no particular event.
const SAMPLE_EVENT: &str = "sample";
/// The status of a response about a label that the provider makes later.
const ACCEPTED: u16 = 202;
/// A check warns of a certificate that expires within this time.
const EXPIRY_NOTICE: TimeDelta = TimeDelta::days(30);
const MAX_VARIANTS_BYTES: usize = 1024 * 1024;

/// Options for an endpoint check.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckOptions {
    /// Only the endpoint of this kind, or `exchange-variants`.
    kind: Option<String>,
    /// Send a sample of this event, for example `rma.refunded`, to the endpoint of its kind only.
    event: Option<String>,
    /// Product whose variants are requested; `SAMPLE-SKU` by default.
    sku: Option<String>,
}

/// Check a merchant's endpoints
///
/// Sends a signed sample of each kind that this service delivers, with the event `sample`, or a sample of
/// one event. Samples are not retried. The request is recorded, see `GET /v1/sample_requests`, and so is the time
/// of the last accepted sample. The exchange service also requests the variants of a product.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["manage"])), params(("merchant" = String, Path), CheckOptions),
    responses((status = 200, body = EndpointCheck))
)]
#[post("/v1/endpoints/{merchant}/check")]
pub(crate) async fn check_endpoints(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    merchant: web::Path<String>,
    query: http::Query<CheckOptions>,
) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Manage)?;
    let engine = &deliveries.0;
    let merchant = parse_merchant(Some(&merchant))?
        .filter(|merchant| engine.merchants.get(merchant).is_some())
        .filter(|merchant| includes(caller.merchant_scope(), Some(merchant.as_str())))
        .ok_or_else(|| Error::NoMerchant(merchant.into_inner()))?;
    let product = VariantIdentifier::parse(query.sku.as_deref().unwrap_or(SAMPLE_SKU))
        .map_err(|error| Error::Malformed(format!("sku: {error}")))?;
    let event = query.event.as_deref().map(find_event).transpose()?;
    let messages = engine.kinds.iter().map(|kind| Interface::Message(*kind));
    // The service that places exchange orders also requests variants.
    let variants = engine.kinds.contains(&MessageKind::ExchangeOrder);
    let interfaces = messages
        .chain(variants.then_some(Interface::Variants))
        .filter(|interface| query.kind.as_ref().is_none_or(|kind| kind == interface.name()))
        .filter(|it| event.is_none_or(|event| *it == Interface::Message(event.kind)));
    let interfaces: Vec<_> = interfaces.collect();
    record_request(engine, &merchant, caller.actor(), event, &interfaces).await?;
    let checks = interfaces.into_iter();
    let checks = checks.map(|interface| check(engine, &merchant, interface, event, &product));
    let results = try_join_all(checks).await?;
    tracing::info!(
        %merchant, by = caller.actor(), samples = results.len(),
        "{} sent samples to the endpoints of {merchant}", caller.actor()
    );
    // The results matter more than the record.
    if let Err(error) = record_accepted(engine, &merchant, &results).await {
        tracing::warn!(error = chain(&error), "accepted samples of {merchant} are not recorded");
    }
    Ok(HttpResponse::Ok().json(EndpointCheck { results }))
}

/// Records the request before anything is sent, because the merchant must be able to see who sent it.
async fn record_request(
    engine: &Engine,
    merchant: &MerchantId,
    actor: &str,
    event: Option<&SampleEvent>,
    interfaces: &[Interface],
) -> Result<(), DatabaseError> {
    let now = engine.clock.now();
    let request = SampleRequest {
        id: new_id(now),
        merchant: merchant.to_string(),
        requested_by: actor.to_owned(),
        event: event.map_or(SAMPLE_EVENT, |event| event.name).to_owned(),
        kinds: interfaces.iter().map(Interface::to_string).collect(),
        requested_at: now,
    };
    insert_sample_request(&mut *engine.pool.get().await?, &request).await
}

/// Records the samples that were accepted.
async fn record_accepted(
    engine: &Engine,
    merchant: &MerchantId,
    results: &[EndpointCheckResult],
) -> Result<(), DatabaseError> {
    let kind = |kind: &MessageKind| {
        let name = kind.to_string();
        let status = results.iter().find_map(|result| accepted_sample(result, &name))?;
        Some((name, status))
    };
    let accepted: Vec<_> = engine.kinds.iter().filter_map(kind).collect();
    if accepted.is_empty() {
        return Ok(());
    }
    let mut conn = engine.pool.get().await?;
    record_samples(&mut conn, merchant.as_str(), &accepted, engine.clock.now()).await
}

async fn check(
    engine: &Engine,
    merchant: &MerchantId,
    interface: Interface,
    event: Option<&SampleEvent>,
    product: &VariantIdentifier,
) -> Result<EndpointCheckResult, Error> {
    let now = engine.clock.now();
    let resolved = match engine.endpoints.find(merchant.as_str(), interface, now) {
        Ok(resolved) => resolved,
        Err(error) => {
            let known = engine.merchants.get(merchant);
            let is_set = known.is_some_and(|known| known.endpoints.contains_key(&interface));
            let outcome = if is_set { "unreachable" } else { "not_set" };
            return Ok(unsent(interface, outcome, chain(&error)));
        }
    };
    let mut client = engine.endpoint_client.clone();
    client.timeout = resolved.timeout.unwrap_or(client.timeout).min(engine.check_timeout);
    let has_credentials = has_credentials(&engine.merchants, merchant, interface);
    let (url, attempt, request) = match interface {
        Interface::Message(kind) => {
            let message = sample_message(merchant, (kind, resolved.message_version), event, now)?;
            let mut attempt =
                client.deliver(&message, &resolved.endpoint, now, Jitter::draw()).await.1;
            if kind == MessageKind::LabelRequest {
                attempt.outcome = attempt.outcome.for_kind(kind, &attempt.response);
            }
            let request = SentRequest::of_message(&message, &attempt, has_credentials);
            (resolved.endpoint.url().clone(), attempt, request)
        }
        Interface::Variants => {
            let url = match product.expand_url(resolved.endpoint.url()) {
                Ok(url) => url,
                Err(error) => {
                    let why = error.to_string();
                    return Ok(unsent(interface, "unreachable", why));
                }
            };
            let query = Query {
                merchant: merchant.to_string(),
                version: resolved.message_version,
                traceparent: platform::telemetry::traceparent(),
                max_response_bytes: MAX_VARIANTS_BYTES,
            };
            let endpoint = resolved.endpoint.with_url(url.clone());
            let attempt = client.fetch(&query, &endpoint, now, Jitter::draw()).await;
            (url, attempt, SentRequest::of_variants(merchant, has_credentials))
        }
    };
    let of_label = match event {
        Some(event) if event.name == LABEL_REQUESTED => {
            label_warnings(&attempt.outcome, &attempt.response)
        }
        _ => Vec::new(),
    };
    let mut result = sent(interface, url, attempt, request);
    result.warnings.extend(of_label);
    result.warnings.extend(certificate_warning(&resolved.endpoint, now));
    Ok(result)
}

/// Warns of a response to a request for a label without a label that can be used, and of parts that would be left out.
fn label_warnings(outcome: &Outcome, response: &[u8]) -> Vec<String> {
    match outcome {
        Outcome::Delivered { status } if *status != ACCEPTED => {}
        _ => return Vec::new(),
    }
    match BoughtLabel::from_response(response) {
        Ok(read) => read.left_out.iter().map(|error| format!("left out: {error}")).collect(),
        Err(invalid) => vec![format!("the response has no label that can be used: {invalid}")],
    }
}

/// Warns of a client certificate that has expired or expires soon.
fn certificate_warning(endpoint: &Endpoint, now: Timestamp) -> Option<String> {
    let expires_at = endpoint.identity()?.expires_at;
    let (verb, day) = match expires_at - now {
        left if left <= TimeDelta::zero() => ("expired", expires_at.date_naive()),
        left if left < EXPIRY_NOTICE => ("expires", expires_at.date_naive()),
        _ => return None,
    };
    Some(format!("the client certificate {verb} on {day}"))
}

fn find_event(name: &str) -> Result<&'static SampleEvent, Error> {
    SampleEvent::find(name).ok_or_else(|| Error::Malformed(format!("there is no event {name}")))
}

/// Whether requests to the endpoint have credentials.
fn has_credentials(merchants: &Merchants, merchant: &MerchantId, interface: Interface) -> bool {
    let merchant = merchants.get(merchant);
    let endpoint = merchant.as_ref().and_then(|merchant| merchant.endpoints.get(&interface));
    endpoint.is_some_and(|endpoint| !matches!(endpoint.authentication, Authentication::None))
}

fn sample_message(
    merchant: &MerchantId,
    (kind, version): (MessageKind, MessageVersion),
    event: Option<&SampleEvent>,
    now: Timestamp,
) -> Result<Message, Error> {
    let (name, body) = match event {
        Some(event) => {
            let broken = |error| Error::BrokenSample(event.name, error);
            (event.name, Bytes::from(event.body(version, now).map_err(broken)?))
        }
        None => (SAMPLE_EVENT, Bytes::from_static(sample(kind).as_bytes())),
    };
    Ok(Message {
        id: new_id(now).to_string(),
        merchant: merchant.to_string(),
        kind,
        version,
        event: name.to_owned(),
        sequence: 1,
        traceparent: platform::telemetry::traceparent(),
        body,
        response_body: ResponseBody::Ignored,
    })
}

#[cfg(test)]
mod tests {
    use platform::ClientIdentity;

    use super::*;
    use crate::endpoint;

    #[test]
    fn a_check_of_a_label_provider_warns_of_a_label_that_cannot_be_used() {
        let warnings = |status: u16, body: &str| {
            label_warnings(&Outcome::Delivered { status }, body.as_bytes())
        };
        let label = r#"{"tracking_number":"1Z","label":"https://labels.example/1.pdf"}"#;
        assert!(warnings(201, label).is_empty());
        assert!(warnings(202, "").is_empty());
        assert!(label_warnings(&Outcome::TimedOut, b"").is_empty());
        assert!(label_warnings(&Outcome::LabelRefused, b"").is_empty());
        let [missing]: [String; 1] = warnings(200, "{}").try_into().unwrap();
        let expected = "the response has no label that can be used: $.tracking_number";
        assert!(missing.starts_with(expected), "{missing}");
        let priced = label.replace("}", r#","cost_cents":499}"#);
        let expected = "left out: $.cost_cents: invalid (needs a currency)";
        assert_eq!(warnings(200, &priced), [expected]);
    }

    #[test]
    fn a_check_warns_of_a_certificate_that_expires() {
        let own = rcgen::generate_simple_self_signed(["client.example".to_owned()]).unwrap();
        let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
        let mut identity = ClientIdentity::parse(&certificate, &key).unwrap();
        identity.expires_at = "2026-11-18T00:00:00Z".parse().unwrap();
        let url = || "https://merchant.example/rmas".parse().unwrap();
        let certificate = endpoint::Authentication::ClientCertificate(identity);
        let endpoint = Endpoint::new(url(), Vec::new(), &certificate, &[]).unwrap();
        for (now, expected) in [
            ("2026-10-19T00:00:00Z", None),
            ("2026-10-20T00:00:00Z", Some("the client certificate expires on 2026-11-18")),
            ("2026-11-18T00:00:00Z", Some("the client certificate expired on 2026-11-18")),
        ] {
            let warning = certificate_warning(&endpoint, now.parse().unwrap());
            assert_eq!(warning.as_deref(), expected, "{now}");
        }
        let none = Endpoint::new(url(), Vec::new(), &endpoint::Authentication::None, &[]).unwrap();
        assert_eq!(certificate_warning(&none, Timestamp::UNIX_EPOCH), None);
    }
}
