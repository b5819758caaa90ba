//! The service with two merchants: acme, whose endpoints are a sandbox, and rival.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use domain::event::Event;
use domain::exchange::{ExchangeFailed, ExchangePlaced, ExchangeUndeliverable, FailureReason};
use domain::merchant::{Authentication, CredentialsIn, Endpoint, Interface, Merchant, Sealed};
use domain::returns::ReturnConfirmed;
use messaging::Envelope;
use platform::Clock;
use platform::config::List;
use platform::sealing::{self, Sealer};
use reqwest::{Method, StatusCode};
use sandbox::journal::{Entry, Page};
use serde_json::{Value, json};
use testkit::{
    Issuer, Listener, SharedService, TestService, eventually, merchant, publish_merchant,
};

use crate::App;

pub(super) const SOON: Duration = Duration::from_secs(300);

pub(super) struct TestApp {
    pub(super) service: TestService,
    pub(super) issuer: Issuer,
    pub(super) sandbox: sandbox::Running,
    pub(super) client: reqwest::Client,
    listener: Listener,
    /// The number of events of each type that the test has seen.
    seen: Mutex<BTreeMap<&'static str, usize>>,
}

/// The service of all tests that need none of their own.
static SHARED: SharedService = SharedService::new(&QUEUES);
/// The queues of rma-engine that this service publishes to.
const QUEUES: [&str; 3] = [
    "rma-engine.exchange.placed.v1",
    "rma-engine.exchange.failed.v1",
    "rma-engine.exchange.undeliverable.v1",
];
const SETTINGS: [(&str, &str); 9] = [
    ("SEALING__KEYS", testkit::sealing_keys()),
    ("SHOPPER__PROOF_KEYS", testkit::sealing_keys()),
    ("BROKER__RELAY_POLL_INTERVAL", "50ms"),
    ("DELIVERY__HTTPS_ONLY", "false"),
    ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
    ("DELIVERY__RETRY_BASE", "20ms"),
    ("DELIVERY__RETRY_FACTOR", "1"),
    ("DELIVERY__POLL_INTERVAL", "20ms"),
    ("PLACING__POLL_INTERVAL", "50ms"),
];

impl TestApp {
    /// Uses the service that all tests share.
    pub(super) async fn start() -> Self {
        Self::with_merchant(|_| {}).await
    }

    /// Uses the shared service with a changed acme. By default the sandbox is its base URL.
    pub(super) async fn with_merchant(set_up: impl FnOnce(&mut Merchant)) -> Self {
        Self::of(SHARED.join::<App>(&SETTINGS).await, set_up).await
    }

    /// Starts a service for a test that locks rows, lets merchants hang, or looks at all merchants or at other
    /// queues.
    pub(super) async fn alone() -> Self {
        Self::with_settings(&[]).await
    }

    pub(super) async fn with_settings(more: &[(&str, &str)]) -> Self {
        let issuer = Issuer::start();
        let settings: Vec<_> =
            issuer.settings().into_iter().chain(SETTINGS).chain(more.iter().copied()).collect();
        let service = TestService::new::<App>(&settings).await;
        Self::of((service, issuer), |_| {}).await
    }

    async fn of(
        (service, issuer): (TestService, Issuer),
        set_up: impl FnOnce(&mut Merchant),
    ) -> Self {
        let mut own = sandbox::settings::Settings::for_tests().unwrap();
        own.journal.capacity = 10_000;
        let sandbox = sandbox::start(&own).unwrap();
        let [mut acme, rival] = ["acme", "rival"].map(|name| merchant(&service.own(name)));
        acme.settings.base_url = Some(sandbox.url(""));
        set_up(&mut acme);
        let client = service.client.clone();
        let listener = service.listener(&QUEUES).await;
        let app = Self { service, issuer, sandbox, client, listener, seen: Mutex::default() };
        for merchant in [acme, rival] {
            publish_merchant(&app.service.namespace, "exchange", merchant).await;
        }
        for name in ["acme", "rival"] {
            eventually("the merchant is replicated", SOON, || async {
                let (status, _) = app.get("/v1/exchange_orders/none", name).await;
                (status == StatusCode::NOT_FOUND).then_some(())
            })
            .await;
        }
        app
    }

    pub(super) async fn get(&self, path: &str, merchant: &str) -> (StatusCode, Value) {
        self.get_with(path, &self.issuer.token(Some(merchant), "returns"), None).await
    }

    pub(super) async fn get_with(
        &self,
        path: &str,
        token: &str,
        merchant: Option<&str>,
    ) -> (StatusCode, Value) {
        self.send(Method::GET, path, token, merchant).await
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        token: &str,
        merchant: Option<&str>,
    ) -> (StatusCode, Value) {
        self.send_body(method, path, token, merchant, None).await
    }

    /// Abandons the exchange order of an order of acme with a note.
    pub(super) async fn abandon(
        &self,
        order: &str,
        token: &str,
        note: &str,
    ) -> (StatusCode, Value) {
        let path = format!("/v1/exchange_orders/{order}/abandon");
        let body = json!({ "note": note });
        self.send_body(Method::POST, &path, token, Some("acme"), Some(&body)).await
    }

    async fn send_body(
        &self,
        method: Method,
        path: &str,
        token: &str,
        merchant: Option<&str>,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let headers: Vec<_> = merchant.map(|name| ("x-service-id", name)).into_iter().collect();
        self.service.send((method, path), token, &headers, body).await
    }

    /// The variants that shoppers of acme get.
    pub(super) async fn variants(&self, product: &str) -> Value {
        let (status, response) = self.get(&format!("/v1/variants/{product}"), "acme").await;
        assert_eq!(status, StatusCode::OK, "{response}");
        response
    }

    /// The status of a look-up without variants, and the reason.
    pub(super) async fn no_variants(&self, product: &str) -> (u16, Value) {
        let (status, response) = self.get(&format!("/v1/variants/{product}"), "acme").await;
        assert_ne!(response["available"], true, "{response}");
        let reason = if status.is_success() { "reason" } else { "code" };
        (status.as_u16(), response[reason].clone())
    }

    pub(super) async fn confirm(&self, confirmed: &ReturnConfirmed) {
        let envelope = Envelope::new("rma-engine", Clock::system().now(), confirmed);
        self.publish(&envelope).await;
    }

    pub(super) async fn publish(&self, envelope: &Envelope<&ReturnConfirmed>) {
        self.service.publish_envelope(envelope).await;
    }

    /// The next events that rma-engine receives: those that the test has not seen, at least as many as expected.
    pub(super) async fn received<E: Event>(&self, expected: usize) -> Vec<E> {
        let what = format!("{expected} events {}", E::TYPE);
        let all = eventually(&what, SOON, async || {
            let (all, seen) = self.events::<E>();
            (all.len() >= seen + expected).then_some(all)
        })
        .await;
        let seen = self.seen.lock().unwrap().insert(E::TYPE, all.len()).unwrap_or_default();
        all.into_iter().skip(seen).collect()
    }

    /// The events that rma-engine received, each once, and the number of those that the test has seen.
    fn events<E: Event>(&self) -> (Vec<E>, usize) {
        let events = self.service.own_events(&self.listener, &format!("rma-engine.{}", E::TYPE));
        let mut ids = BTreeSet::new();
        let mut events: Vec<Envelope<E>> =
            events.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect();
        events.retain(|event| ids.insert(event.id));
        let seen = self.seen.lock().unwrap().get(E::TYPE).copied().unwrap_or_default();
        (events.into_iter().map(|event| event.data).collect(), seen)
    }

    /// Fails if there are events of this type that the test has not seen.
    fn check_all_seen<E: Event + std::fmt::Debug>(&self) {
        let (events, seen) = self.events::<E>();
        assert!(events.len() == seen, "{:?}", events.get(seen..));
    }

    pub(super) async fn placed(&self) -> ExchangePlaced {
        self.received(1).await.remove(0)
    }

    pub(super) async fn failed(&self) -> ExchangeFailed {
        self.received(1).await.remove(0)
    }

    pub(super) async fn undeliverable(&self) -> ExchangeUndeliverable {
        self.received(1).await.remove(0)
    }

    /// Waits until nothing is in flight, and checks that no event is left unread.
    pub(super) async fn wait_until_idle(&self) {
        let busy = "SELECT (SELECT count(*) FROM confirmations \
                        WHERE state = 'waiting' AND merchant IN ('acme', 'rival')) \
                    + (SELECT count(*) FROM deliveries WHERE merchant IN ('acme', 'rival')) \
                    + (SELECT count(*) FROM outbox) AS n";
        eventually("nothing is in flight", SOON, || async {
            (self.count(busy).await == 0).then_some(())
        })
        .await;
        self.listener.catch_up().await;
        self.check_all_seen::<ExchangePlaced>();
        self.check_all_seen::<ExchangeFailed>();
        self.check_all_seen::<ExchangeUndeliverable>();
    }

    pub(super) async fn request_sandbox(&self, method: Method, path: &str, body: &Value) -> Value {
        let request = self.client.request(method, self.sandbox.url(path)).json(body);
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.status());
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default()
    }

    pub(super) async fn behave(&self, path: &str, steps: Value) {
        self.request_sandbox(Method::PUT, "/behaviour", &json!({"path": path, "steps": steps}))
            .await;
    }

    /// Requests that the sandbox received under a path.
    pub(super) async fn journal(&self, path: &str) -> Vec<Entry> {
        let path = format!("/journal?limit=1000&path={path}");
        let page = self.request_sandbox(Method::GET, &path, &json!({})).await;
        serde_json::from_value::<Page>(page).unwrap().entries
    }

    pub(super) async fn execute(&self, statement: &str) {
        use diesel_async::RunQueryDsl as _;
        let mut conn = self.service.pool.get().await.unwrap();
        let statement = self.service.own_query(statement);
        diesel::sql_query(statement).execute(&mut conn).await.unwrap();
    }

    pub(super) async fn count(&self, query: &str) -> i64 {
        let query = self.service.own_query(query);
        testkit::count(&mut self.service.pool.get().await.unwrap(), &query).await
    }
}

/// Adds an endpoint for variants with this authentication.
pub(super) fn add_variants_endpoint(
    merchant: &mut Merchant,
    authentication: Authentication<Sealed>,
) {
    let endpoint = Endpoint {
        url: None,
        path: None,
        headers: BTreeMap::new(),
        authentication,
        certificate_expires_at: None,
        timeout_ms: None,
        version: None,
        recovery_replay_days: None,
        paused: false,
        signing_secrets: Vec::new(),
    };
    merchant.endpoints.insert(Interface::Variants, Box::new(endpoint));
}

/// Adds an endpoint for variants with OAuth tokens from the sandbox.
pub(super) fn add_oauth_variants_endpoint(acme: &mut Merchant) {
    let keys = List(vec![testkit::sealing_keys().into()]);
    let sealer = Sealer::new(&sealing::Settings { keys }).unwrap();
    let context = Interface::Variants.sealing_context(&acme.identifier);
    let authentication = Authentication::Oauth2 {
        token_url: format!("{}/oauth/token", acme.settings.base_url.as_ref().unwrap()).into(),
        client_id: "backhaul".to_owned(),
        client_secret: sealer.seal(&context, "secret").unwrap(),
        scope: None,
        credentials_in: CredentialsIn::Body,
    };
    add_variants_endpoint(acme, authentication);
}

/// The only reason why units failed.
#[track_caller]
pub(super) fn reason(failed: &ExchangeFailed) -> FailureReason {
    let reason = failed.items[0].reason;
    assert!(failed.items.iter().all(|item| item.reason == reason), "{failed:?}");
    reason
}

/// A confirmed return of acme with these units.
pub(crate) fn confirmed(rma: &str, order: &str, units: &[Value]) -> ReturnConfirmed {
    let address = json!({
        "name": "Ada Byron", "street1": "1 Long Road", "city": "London", "country_code": "GB",
        "zip_code": "N1",
    });
    let units: Vec<_> = units
        .iter()
        .map(|unit| {
            let mut unit = unit.clone();
            unit["order_identifier"] = json!(order);
            unit
        })
        .collect();
    let event = json!({
        "merchant": "acme", "rma_identifier": rma, "original_order_id": order,
        "currency": "USD", "is_gift": false,
        "customer": {"identifier": "c-1", "first_name": "Ada", "email": "ada@example.com"},
        "shipping_address": address, "billing_address": address, "units": units,
        "gift_card": {"sku": "GIFT-CARD", "bonus_credit_amount_cents": 500},
        "confirmed_at": "2026-03-01T00:00:00Z",
    });
    serde_json::from_value(event).unwrap()
}

/// A unit that is exchanged for another variant of the product TEE.
pub(super) fn exchanged(line: &str, unit: u8, sku: &str, cents: i64) -> Value {
    let variant = json!({
        "sku": sku, "title": format!("Shirt {sku}"), "unit_price_amount_cents": cents,
    });
    unit_of(line, unit, &json!({"resolution": "exchange", "variant": variant}))
}

/// A unit that is refunded as a gift card.
pub(super) fn gift_card_unit(line: &str, unit: u8) -> Value {
    unit_of(line, unit, &json!({"resolution": "gift_card"}))
}

fn unit_of(line: &str, unit: u8, replacement: &Value) -> Value {
    json!({
        "order_line_item_identifier": line, "unit": unit, "sku": "TEE-XL", "title": "Shirt",
        "product_identifier": "P-1", "variant_identifier": "TEE", "concept": "Acme Sport",
        "unit_price_amount_cents": 2500, "product_amount_cents": 2500,
        "discount_amount_cents": 200, "tax_amount_cents": 150, "replacement": replacement,
    })
}
