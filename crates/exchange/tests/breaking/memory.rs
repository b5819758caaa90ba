//! The service as a process with a memory limit, and a merchant that responds slowly to large exchange
//! orders.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should panic")]

use std::collections::BTreeMap;
use std::time::Duration;

use diesel_async::SimpleAsyncConnection as _;
use domain::merchant::{Authentication, Endpoint, Interface, Sealed};
use domain::message_kind::MessageKind;
use domain::returns::ReturnConfirmed;
use messaging::Envelope;
use platform::database::Pool;
use platform::{Clock, Service as _};
use serde_json::json;
use testkit::{
    DELIVERY_SETTINGS, Database, Issuer, MEMORY_LIMIT_KIB, Namespace, Replica, eventually,
    merchant, publish_merchant,
};

const TIMEOUT: Duration = Duration::from_secs(300);
const ORDERS: usize = 64;
const BODY_BYTES: usize = 6_000_000;

const EXCHANGE_ORDERS: Interface = Interface::Message(MessageKind::ExchangeOrder);

fn endpoint(paused: bool) -> Endpoint<Sealed> {
    Endpoint {
        url: None,
        path: None,
        headers: BTreeMap::new(),
        authentication: Authentication::None,
        certificate_expires_at: None,
        timeout_ms: None,
        version: None,
        recovery_replay_days: None,
        paused,
        signing_secrets: Vec::new(),
    }
}

fn confirmed(number: usize) -> ReturnConfirmed {
    let address = json!({
        "name": "Ada Byron", "street1": "1 Long Road", "city": "London", "country_code": "GB",
    });
    let order = format!("O-{number}");
    let event = json!({
        "merchant": "acme", "rma_identifier": format!("R-{number}"), "original_order_id": order,
        "currency": "USD", "is_gift": false, "customer": {"identifier": "c-1"},
        "shipping_address": address, "billing_address": address,
        "units": [{
            "order_identifier": order, "order_line_item_identifier": "L1", "unit": 1,
            "sku": "TEE-S", "title": "Shirt", "product_identifier": "P-1",
            "unit_price_amount_cents": 2500, "product_amount_cents": 2500,
            "discount_amount_cents": 0, "tax_amount_cents": 0,
            "replacement": {"resolution": "gift_card"},
        }],
        "gift_card": {"sku": "CARD", "bonus_credit_amount_cents": 0},
        "confirmed_at": "2026-03-01T00:00:00Z",
    });
    serde_json::from_value(event).unwrap()
}

async fn confirm_all(namespace: &Namespace) {
    let now = Clock::system().now();
    let events: Vec<_> = (0..ORDERS).map(confirmed).collect();
    let envelopes: Vec<_> =
        events.iter().map(|event| Envelope::new("rma-engine", now, event)).collect();
    namespace.publish_events(&envelopes).await;
}

async fn wait_for(pool: &Pool, what: &str, query: &str, expected: usize) {
    eventually(what, TIMEOUT, || async {
        let found = testkit::count(&mut pool.get().await.unwrap(), query).await;
        (usize::try_from(found).unwrap() == expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_exchange_orders_in_flight_fit_into_512_mib() {
    let sandbox = sandbox::start(&sandbox::settings::Settings::for_tests().unwrap()).unwrap();
    let database = Database::create(exchange::App::migrations()).await;
    let namespace = Namespace::create();
    let issuer = Issuer::start();
    let pool = database.pool();
    let settings: Vec<_> = DELIVERY_SETTINGS
        .into_iter()
        .chain([
            ("SHOPPER__PROOF_KEYS", testkit::sealing_keys()),
            ("DELIVERY__ATTEMPT_TIMEOUT", "2m"),
            ("DELIVERY__INITIAL_WINDOW", "64"),
        ])
        .collect();
    let program = env!("CARGO_BIN_EXE_exchange");
    let dependencies = (&database, &namespace, &issuer);
    let replica = Replica::start_limited("exchange", program, dependencies, &settings).await;

    let client = platform::http_client(TIMEOUT).unwrap();
    let behave = async |steps: serde_json::Value| {
        let rule = json!({"path": "/exchange_orders", "steps": steps});
        let request = client.put(sandbox.url("/behaviour")).json(&rule);
        assert!(request.send().await.unwrap().status().is_success());
    };
    behave(json!([{"do": "respond", "delay_ms": 2000, "times": "always"}])).await;
    let mut acme = merchant("acme");
    acme.settings.base_url = Some(sandbox.url(""));
    acme.endpoints.insert(EXCHANGE_ORDERS, Box::new(endpoint(true)));
    publish_merchant(&namespace, "exchange", acme.clone()).await;
    confirm_all(&namespace).await;
    let placed = "SELECT count(*) AS n FROM exchange_orders";
    wait_for(&pool, "all orders are placed", placed, ORDERS).await;
    let larger = format!(
        "UPDATE delivery_messages SET body = convert_to('{{\"x\":\"' || repeat('x', {BODY_BYTES}) || '\"}}', 'UTF8')"
    );
    pool.get().await.unwrap().batch_execute(&larger).await.unwrap();

    acme.endpoints.insert(EXCHANGE_ORDERS, Box::new(endpoint(false)));
    acme.version += 1;
    publish_merchant(&namespace, "exchange", acme).await;
    let accepted = "SELECT count(*) AS n FROM exchange_orders WHERE state = 'placed'";
    wait_for(&pool, "every order was accepted", accepted, ORDERS).await;
    assert!(replica.peak_memory_kib() < MEMORY_LIMIT_KIB, "{} KiB", replica.peak_memory_kib());
}
