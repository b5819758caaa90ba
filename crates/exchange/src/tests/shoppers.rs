//! Shoppers see variants with a proof of an order, and nothing else.

use chrono::TimeDelta;
use platform::config::List;
use platform::shopper_proof::{self, ProofKeys};
use platform::{Clock, Timestamp};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::app::TestApp;
use crate::App;

const VARIANTS: &str = "/v1/variants/TEE";

/// A proof that was issued at a time.
fn proof(app: &TestApp, merchant: &str, is_gift: bool, issued_at: Timestamp) -> String {
    let proof_keys = List(vec![testkit::sealing_keys().into()]);
    let settings = shopper_proof::Settings { proof_keys };
    let keys = ProofKeys::new(&settings, Clock::from_fn(move || issued_at)).unwrap();
    keys.issue(&app.service.own(merchant).parse().unwrap(), "A", is_gift).unwrap().0
}

/// Sends a request of the portal about acme.
async fn send(app: &TestApp, method: Method, path: &str, proof: &str) -> (StatusCode, Value) {
    let token = app.issuer.token_of("portal", None, "shopper");
    let url = format!("{}{path}", app.service.url);
    let request = app.client.request(method.clone(), url).bearer_auth(token);
    let mut request = request.header("x-service-id", app.service.own("acme"));
    if !proof.is_empty() {
        request = request.header("x-shopper-proof", proof);
    }
    if method != Method::GET {
        request = request.json(&json!({}));
    }
    let response = request.send().await.unwrap();
    let status = response.status();
    (status, response.json().await.unwrap_or_default())
}

/// Every operation of the service that needs a token, with sample values for its parameters.
fn operations() -> Vec<(Method, String)> {
    let document = json!(platform::openapi::<App>());
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["security"].as_array().is_none_or(Vec::is_empty) {
                continue;
            }
            let mut path = path.clone();
            let mut query = Vec::new();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                let schema = &parameter["schema"];
                let value = match (schema["type"].as_str(), schema["format"].as_str()) {
                    (_, Some("uuid")) => "00000000-0000-0000-0000-000000000000",
                    (Some("integer"), _) => "1",
                    _ => "acme",
                };
                path = path.replace(&format!("{{{name}}}"), value);
                if parameter["in"] == "query" && parameter["required"] == true {
                    query.push(format!("{name}={value}"));
                }
            }
            let method = method.to_uppercase().parse().unwrap();
            operations.push((method, format!("{path}?{}", query.join("&"))));
        }
    }
    operations
}

#[tokio::test]
async fn without_a_proof_nothing_is_open() {
    let app = TestApp::start().await;
    let operations = operations();
    assert!(operations.len() > 10, "{operations:?}");
    for (method, path) in operations {
        for proof in ["", "nonsense"] {
            let (status, response) = send(&app, method.clone(), &path, proof).await;
            let is_refused = [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&status);
            assert!(is_refused, "{method} {path} {proof:?}: {status} {response}");
        }
    }
}

#[tokio::test]
async fn a_proof_opens_the_variants_of_its_merchant() {
    let app = TestApp::start().await;
    let now = Clock::system().now();
    let (status, offer) = send(&app, Method::GET, VARIANTS, &proof(&app, "acme", false, now)).await;
    assert_eq!(status, StatusCode::OK, "{offer}");
    assert_eq!(offer["variants"][0]["unit_price_amount_cents"], 2500);
    for (proof, code) in [
        (proof(&app, "rival", false, now), "proof_required"),
        (proof(&app, "acme", false, now - TimeDelta::minutes(31)), "proof_expired"),
    ] {
        let (status, refusal) = send(&app, Method::GET, VARIANTS, &proof).await;
        assert_eq!((status, &refusal["code"]), (StatusCode::FORBIDDEN, &json!(code)));
    }
    let (status, _) =
        send(&app, Method::GET, "/v1/exchange_orders/A", &proof(&app, "acme", false, now)).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_giftee_sees_variants_without_prices() {
    let app = TestApp::start().await;
    let now = Clock::system().now();
    let gift = proof(&app, "acme", true, now);
    let (status, offer) = send(&app, Method::GET, VARIANTS, &gift).await;
    assert_eq!((status, &offer["variants"][0]["sku"]), (StatusCode::OK, &json!("TEE-S")));
    assert!(!offer.to_string().contains("_cents"), "{offer}");
    // One gift among several orders is enough.
    let both = format!("{}, {gift}", proof(&app, "acme", false, now));
    let (_, offer) = send(&app, Method::GET, VARIANTS, &both).await;
    assert!(!offer.to_string().contains("_cents"), "{offer}");
}
