mod batches;
mod bodies;
mod canceling;
mod changes;
mod contract;
mod deadlines;
mod destinations;
mod discrepancies;
mod erasing;
mod exchange_deadlines;
mod exchanging;
mod filtering;
mod guarantees;
mod histories;
mod keeping;
mod late_parcels;
mod limits;
mod listing;
mod looking_up;
mod moving;
mod notices;
mod order_views;
mod policies;
mod projecting;
mod quoting;
mod receiving;
mod refunding;
mod renaming;
mod restoring;
mod returning;
mod reviews;
mod search_plans;
mod shipped_unit_sizes;
mod shoppers;
mod stale_plans;
mod storing;
mod transitions;

use std::time::Duration;

use diesel::QueryableByName;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use domain::event::Event;
use domain::merchant::Merchant;
use domain::order::{Order, OrderStored, OrderStoredInBulk};
use messaging::Envelope;
use platform::database::Connection;
use platform::{Clock, Service as _};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::{Issuer, SharedService, TestService, eventually, merchant, publish_merchant};

use crate::App;
use bodies::{choice, refund_of, unit};

/// Timeout for effects that should be immediate.
const SOON: Duration = Duration::from_secs(300);

/// The service of all tests that need no settings of their own.
static SHARED: SharedService = SharedService::new(&QUEUES);
const QUEUES: [&str; 2] = ["exchange.return.confirmed.v1", "exchange.exchange.renamed.v1"];
const SETTINGS: [(&str, &str); 7] = [
    ("SEALING__KEYS", testkit::sealing_keys()),
    ("SHOPPER__PROOF_KEYS", testkit::sealing_keys()),
    ("BROKER__RELAY_POLL_INTERVAL", "50ms"),
    ("DELIVERY__HTTPS_ONLY", "false"),
    ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
    ("DELIVERY__POLL_INTERVAL", "20ms"),
    ("DEADLINES__POLL_INTERVAL", "100ms"),
];

/// The running service with the merchants acme and rival, and a sandbox that receives their
/// messages.
struct TestApp {
    service: TestService,
    issuer: Issuer,
    client: reqwest::Client,
    sandbox: sandbox::Running,
    pool: platform::database::Pool,
}

/// A message that reached a merchant.
#[derive(Debug, Clone, PartialEq)]
struct Arrival {
    event: String,
    sequence: i64,
    body: Value,
}

impl TestApp {
    /// Uses the service that all tests share.
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Uses the shared service, with acme as `adjust` changes it.
    async fn with(adjust: impl FnOnce(&mut Merchant)) -> Self {
        Self::of(SHARED.join::<App>(&SETTINGS).await, adjust).await
    }

    /// Starts a service for a test that stops it, locks its tables, looks at its queues or at all merchants.
    async fn alone() -> Self {
        Self::with_settings(&[], |_| {}).await
    }

    async fn with_settings(
        own: &[(&'static str, &'static str)],
        adjust: impl FnOnce(&mut Merchant),
    ) -> Self {
        let issuer = Issuer::start();
        let settings = issuer.settings().into_iter().chain(SETTINGS);
        let settings: Vec<_> = settings.chain(own.iter().copied()).collect();
        let service = TestService::new::<App>(&settings).await;
        Self::of((service, issuer), adjust).await
    }

    async fn of(
        (service, issuer): (TestService, Issuer),
        adjust: impl FnOnce(&mut Merchant),
    ) -> Self {
        let mut own = sandbox::settings::Settings::for_tests().unwrap();
        own.journal.capacity = 100_000;
        let sandbox = sandbox::start(&own).unwrap();
        let client = service.client.clone();
        let pool = service.pool.clone();
        let app = Self { service, issuer, client, sandbox, pool };
        let mut acme = merchant("acme");
        adjust(&mut acme);
        app.add_merchants([acme, merchant("rival")]).await;
        app
    }

    /// Adds merchants that receive below their own paths, and waits until the service knows them.
    async fn add_merchants(&self, merchants: [Merchant; 2]) {
        let names = merchants.each_ref().map(|it| it.identifier.to_string());
        for mut merchant in merchants {
            merchant.settings.base_url =
                Some(self.sandbox.url(&format!("/{}", merchant.identifier)));
            self.service.publish_merchant(merchant).await;
        }
        for name in names {
            eventually("the merchant is replicated", SOON, || async {
                let (status, _) = self.get("/v1/orders/none/returnable", &name).await;
                (status == StatusCode::NOT_FOUND).then_some(())
            })
            .await;
        }
    }

    /// Publishes a later version of acme.
    async fn change_acme(&self, version: i64, change: impl FnOnce(&mut Merchant)) {
        let mut acme = merchant("acme");
        acme.version = version;
        acme.settings.base_url = Some(self.sandbox.url("/acme"));
        change(&mut acme);
        self.service.publish_merchant(acme).await;
    }

    async fn get(&self, path: &str, merchant: &str) -> (StatusCode, Value) {
        self.send_as(Method::GET, path, merchant, &[], None).await
    }

    async fn post(&self, path: &str, merchant: &str, body: &Value) -> (StatusCode, Value) {
        self.send_as(Method::POST, path, merchant, &[], Some(body)).await
    }

    async fn send_as(
        &self,
        method: Method,
        path: &str,
        merchant: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let token = self.issuer.token(Some(merchant), "returns");
        self.send(method, path, &token, headers, body).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        token: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        self.service.send((method, path), token, headers, body).await
    }

    /// Sends an event to the service, as another service would.
    async fn publish_event<E: Event>(&self, event: E) {
        self.publish_event_at(event, None).await;
    }

    /// Sends an event with a sequence number.
    async fn publish_event_at<E: Event>(&self, event: E, sequence: Option<i64>) {
        let mut envelope = Envelope::new("test", Clock::system().now(), &event);
        envelope.sequence = sequence;
        self.service.publish_envelope(&envelope).await;
    }

    async fn publish(&self, merchant: &str, order: &Order) {
        let merchant = merchant.parse().unwrap();
        self.publish_event(OrderStored { merchant, order: order.clone(), is_reset: false }).await;
    }

    /// Publishes an order and waits until it is projected.
    async fn store(&self, merchant: &str, order: &Order) {
        self.publish(merchant, order).await;
        self.projected(merchant, order).await;
    }

    /// Waits until a snapshot is projected.
    async fn projected(&self, merchant: &str, order: &Order) {
        let path = format!("/v1/orders/{}/returnable", order.identifier.replace('#', "%23"));
        let updated_at = json!(order.updated_at);
        eventually("the order is projected", SOON, || async {
            let (_, seen) = self.get(&path, merchant).await;
            (seen["order_updated_at"] == updated_at).then_some(())
        })
        .await;
    }

    /// Creates a return for acme and returns its identifier.
    async fn start_return(&self, body: &Value) -> String {
        let (status, rma) = self.post("/v1/returns", "acme", body).await;
        assert_eq!(status, StatusCode::CREATED, "{rma}");
        rma["rma_identifier"].as_str().unwrap().to_owned()
    }

    async fn show(&self, rma: &str) -> Value {
        let (status, shown) = self.get(&format!("/v1/returns/{rma}"), "acme").await;
        assert_eq!(status, StatusCode::OK);
        shown
    }

    /// Sends a carrier report for acme.
    async fn carrier(&self, body: &Value) -> (StatusCode, Value) {
        let token = self.issuer.token(None, "carrier");
        let acme = [("x-service-id", "acme")];
        self.send(Method::POST, "/v1/carrier_events", &token, &acme, Some(body)).await
    }

    /// Receives units for acme.
    async fn receive(&self, rma: &str, body: &Value) -> (StatusCode, Value) {
        let token = self.issuer.token(None, "warehouse");
        let path = format!("/v1/returns/{rma}/receipts");
        let acme = [("x-service-id", "acme")];
        self.send(Method::POST, &path, &token, &acme, Some(body)).await
    }

    /// Events of the messages that acme received, in order.
    async fn sent_messages(&self) -> Vec<String> {
        self.arrivals("acme").await.into_iter().map(|it| it.event).collect()
    }

    /// Waits until another service got this number of events, and returns their data.
    async fn events(&self, queue: &str, count: usize) -> Vec<Value> {
        let listener = self.service.listener(&QUEUES).await;
        let events = self.service.events_in(&listener, queue, count).await;
        events.into_iter().map(|mut event| event["data"].take()).collect()
    }

    async fn number(&self, query: &str) -> i64 {
        let query = self.service.own_query(query);
        testkit::count(&mut self.pool.get().await.unwrap(), &query).await
    }

    /// Locks a return until the connection commits.
    async fn lock_return(&self, rma: &str) -> Connection {
        let mut holder = self.pool.get().await.unwrap();
        let lock =
            format!("BEGIN; SELECT FROM returns WHERE rma_identifier = '{rma}' FOR NO KEY UPDATE");
        holder.batch_execute(&lock).await.unwrap();
        holder
    }

    /// Executes statements about acme that the service never does.
    async fn change_rows(&self, statements: &str) {
        let statements = self.service.own_query(statements);
        self.pool.get().await.unwrap().batch_execute(&statements).await.unwrap();
    }

    /// All messages that a merchant received, once no delivery is left.
    async fn arrivals(&self, merchant: &str) -> Vec<Arrival> {
        eventually("everything is delivered", SOON, || async {
            let left = "SELECT count(*) AS n FROM deliveries WHERE merchant IN ('acme', 'rival')";
            (self.number(left).await == 0).then_some(())
        })
        .await;
        let url = self.sandbox.url(&format!("/journal?path=/{merchant}/rmas&limit=1000"));
        let page: sandbox::journal::Page =
            self.client.get(url).send().await.unwrap().json().await.unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let arrival = |entry: sandbox::journal::Entry| Arrival {
            event: text(&entry.headers["x-service-event"]),
            sequence: text(&entry.headers["x-service-sequence"]).parse().unwrap(),
            body: entry.body,
        };
        page.entries.into_iter().map(arrival).collect()
    }
}
