//! Shoppers, who act with the token of the portal and with proofs of their orders.

mod access;
mod deep_links;
mod gifts;
mod labels;
mod limits;
mod lookups;
mod portals;
mod returns;
mod timelines;

use domain::merchant::LookupKey;
use domain::returns::GiftCardOffer;
use platform::Timestamp;
use platform::config::List;
use platform::shopper_proof::{self, ProofKeys};

use super::projecting::order;
use super::*;

const EMAIL: &str = "ada@shop.example";

/// The settings of all tests: the shopper's address comes from the portal, and failures need no time.
const PORTAL: [(&str, &str); 2] =
    [("HTTP__TRUSTED_PROXIES", "127.0.0.1/32"), ("LOOKUPS__MIN_FAILURE_LATENCY", "0ms")];

static SHARED: SharedService = SharedService::new(&[]);

async fn start(adjust: impl FnOnce(&mut Merchant)) -> TestApp {
    let settings: Vec<_> = SETTINGS.into_iter().chain(PORTAL).collect();
    TestApp::of(SHARED.join::<App>(&settings).await, adjust).await
}

/// The service with order A of Ada, which has four units.
async fn start_with_order() -> TestApp {
    let app = start(|acme| {
        let sku = "CARD".to_owned();
        let card = GiftCardOffer { sku, bonus_credit_amount_cents: 500 };
        acme.settings.returns.gift_card = Some(card);
        acme.settings.appearance.withdrawal = true;
    })
    .await;
    app.store("acme", &adas_order("A", 4)).await;
    app
}

fn adas_order(identifier: &str, units: i64) -> Order {
    let mut order = order(identifier, units);
    order.customer.identifier = "ada".to_owned();
    order.customer.email = Some(EMAIL.to_owned());
    order.shipping_address.zip_code = Some("N1 9GU".to_owned());
    order.billing_address.zip_code = Some("99999".to_owned());
    let line = &mut order.items[0];
    line.title = "Tee, L".to_owned();
    line.image_url = Some("https://shop.example/tee.jpg".to_owned());
    line.variant_identifier = Some("TEE".to_owned());
    order
}

/// The keys of the service with a clock of the test.
fn proof_keys(now: Timestamp) -> ProofKeys {
    let proof_keys = List(vec![testkit::sealing_keys().into()]);
    let settings = shopper_proof::Settings { proof_keys };
    ProofKeys::new(&settings, Clock::from_fn(move || now)).unwrap()
}

/// A proof of an order of acme.
fn proof(app: &TestApp, order: &str, is_gift: bool) -> String {
    let keys = proof_keys(Clock::system().now());
    keys.issue(&app.service.own("acme").parse().unwrap(), order, is_gift).unwrap().0
}

/// Sends a request of the portal about acme.
async fn send_from_portal(
    app: &TestApp,
    (method, path): (Method, &str),
    proofs: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> (StatusCode, Value) {
    let token = app.issuer.token_of("portal", None, "shopper");
    let own = [("x-service-id", "acme"), ("x-shopper-proof", proofs)];
    let own = own.into_iter().filter(|(_, value)| !value.is_empty());
    let headers: Vec<_> = own.chain(headers.iter().copied()).collect();
    app.send(method, path, &token, &headers, body).await
}

async fn get(app: &TestApp, path: &str, proofs: &str) -> (StatusCode, Value) {
    send_from_portal(app, (Method::GET, path), proofs, &[], None).await
}

async fn post(app: &TestApp, path: &str, proofs: &str, body: &Value) -> (StatusCode, Value) {
    send_from_portal(app, (Method::POST, path), proofs, &[], Some(body)).await
}

/// An address that no other test has, because failures count for an address.
fn own_address(app: &TestApp, address: &str) -> String {
    let test: u32 = app.service.own("").trim_start_matches('-').parse().unwrap_or_default();
    address.replace("192.0.2.", &format!("10.{}.{}.", test / 256 % 256, test % 256))
}

/// Looks up an order of acme from an address.
async fn look_up(app: &TestApp, address: &str, body: &Value) -> (StatusCode, Value) {
    let address = own_address(app, address);
    let from = [("x-forwarded-for", address.as_str())];
    send_from_portal(app, (Method::POST, "/v1/lookups"), "", &from, Some(body)).await
}

/// Checks that the shopper gets 403 with a code.
#[track_caller]
fn check_refusal((status, body): &(StatusCode, Value), code: &str) {
    assert_eq!((*status, &body["code"]), (StatusCode::FORBIDDEN, &json!(code)), "{body}");
}

/// The paths of all members whose name ends with `_cents`.
fn amounts(value: &Value) -> Vec<String> {
    let below = |name: String, value: &Value| -> Vec<String> {
        amounts(value).into_iter().map(|path| format!("{name}.{path}")).collect()
    };
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| {
                let own = name.ends_with("_cents").then(|| name.clone());
                own.into_iter().chain(below(name.clone(), value)).collect::<Vec<_>>()
            })
            .collect(),
        Value::Array(elements) => {
            elements.iter().flat_map(|value| below("[]".to_owned(), value)).collect()
        }
        _ => Vec::new(),
    }
}
