//! The service is killed while it projects orders, and again while shoppers return them: nothing is
//! lost, and nothing happens twice.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot continue should panic"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use domain::order::sample::Orders;
use domain::order::{Order, OrderStored};
use futures_util::future::join_all;
use messaging::Envelope;
use platform::database::Pool;
use platform::{Clock, Service as _};
use reqwest::StatusCode;
use sandbox::journal::Page;
use serde_json::{Value, json};
use testkit::{
    CRASH_SETTINGS, Database, Issuer, Namespace, Replica, eventually, merchant, publish_merchant,
};

const ORDERS: usize = 3000;
/// Number of orders of which one unit is returned.
const RETURNS: usize = 400;
const TIMEOUT: Duration = Duration::from_secs(300);

struct TestApp {
    replica: Option<Replica>,
    url: String,
    issuer: Issuer,
    sandbox: sandbox::Running,
    client: reqwest::Client,
    pool: Pool,
    namespace: Namespace,
    database: Database,
}

impl TestApp {
    async fn start() -> Self {
        let mut own = sandbox::settings::Settings::for_tests().unwrap();
        own.journal.capacity = 10 * RETURNS;
        let database = Database::create(rma_engine::App::migrations()).await;
        let mut app = Self {
            replica: None,
            url: String::new(),
            issuer: Issuer::start(),
            sandbox: sandbox::start(&own).unwrap(),
            client: platform::http_client(Duration::from_secs(300)).unwrap(),
            pool: database.pool(),
            namespace: Namespace::create(),
            database,
        };
        app.start_replica().await;
        let mut acme = merchant("acme");
        acme.settings.base_url = Some(app.sandbox.url(""));
        publish_merchant(&app.namespace, "rma-engine", acme).await;
        app.until("the merchant is copied", "SELECT count(*) AS n FROM replica_merchants", 1).await;
        app
    }

    async fn start_replica(&mut self) {
        let places = (&self.database, &self.namespace, &self.issuer);
        let program = env!("CARGO_BIN_EXE_rma-engine");
        let replica = Replica::start("rma-engine", program, places, &CRASH_SETTINGS).await;
        self.url.clone_from(&replica.url);
        self.replica = Some(replica);
    }

    /// Publishes every event twice.
    async fn publish(&self) {
        let order = order();
        let stored = |number| {
            let mut order = order.clone();
            order.identifier = identifier(number);
            order.items[0].identifier = format!("{}-1", order.identifier);
            OrderStored { merchant: "acme".parse().unwrap(), order, is_reset: false }
        };
        let events: Vec<_> = (0..ORDERS).map(stored).collect();
        let mut envelopes = Vec::new();
        for event in &events {
            let envelope = Envelope::new("order-intake", Clock::system().now(), event);
            envelopes.extend([envelope.clone(), envelope]);
        }
        self.namespace.publish_events(&envelopes).await;
    }

    /// Requests a return of an order's first unit; `None` without a successful response.
    async fn request_return(&self, number: usize) -> Option<String> {
        let name = identifier(number);
        let body = json!({ "return_method": "mail-back", "units": [{
            "order_identifier": name, "order_line_item_identifier": format!("{name}-1"), "unit": 1,
            "return_reason": "TOO_SMALL", "resolution": "refund",
        }] });
        let request = self
            .client
            .post(format!("{}/v1/returns", self.url))
            .bearer_auth(self.issuer.token(Some("acme"), "returns"))
            .header("idempotency-key", &name)
            .header("content-type", "application/json")
            .body(body.to_string());
        let response = request.send().await.ok()?;
        if response.status() != StatusCode::CREATED {
            return None;
        }
        let rma: Value = response.json().await.ok()?;
        Some(rma["rma_identifier"].as_str().unwrap().to_owned())
    }

    async fn count(&self, query: &str) -> i64 {
        testkit::count(&mut self.pool.get().await.unwrap(), query).await
    }

    async fn until(&self, what: &str, query: &str, expected: usize) {
        let expected = i64::try_from(expected).unwrap();
        eventually(what, TIMEOUT, || async { (self.count(query).await == expected).then_some(()) })
            .await;
    }

    /// Waits for the first rows, kills the service, and starts it again.
    async fn kill_during(&mut self, counting: &str, all: usize, doing: impl AsyncFnOnce(&Self)) {
        let replica = self.replica.take();
        let app = &*self;
        let kill = async {
            eventually("it is in the middle of it", TIMEOUT, || async {
                (app.count(counting).await > 10).then_some(())
            })
            .await;
            drop(replica);
        };
        tokio::join!(doing(app), kill);
        assert!(self.count(counting).await < i64::try_from(all).unwrap(), "too late");
        self.start_replica().await;
    }
}

fn identifier(number: usize) -> String {
    format!("A-{number}")
}

/// An order with one line of two shipped units.
fn order() -> Order {
    let now = Clock::system().now();
    let shop = Orders::new(7, now);
    let mut order = (0..).map(|n| shop.at(n)).find(|it| it.items[0].quantity_shipped > 0).unwrap();
    order.refunds.clear();
    order.items.truncate(1);
    let line = &mut order.items[0];
    (line.quantity, line.quantity_shipped, line.quantity_canceled) = (2, 2, 0);
    line.shipped_date = Some(now - TimeDelta::days(2));
    line.tags.clear();
    order
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_loses_nothing_and_repeats_nothing() {
    let mut app = TestApp::start().await;
    let orders = "SELECT count(*) AS n FROM orders";
    app.kill_during(orders, ORDERS, async |app| app.publish().await).await;
    app.until("every order is projected", orders, ORDERS).await;

    let returns = "SELECT count(*) AS n FROM returns";
    app.kill_during(returns, RETURNS, async |app| {
        drop(join_all((0..RETURNS).map(|number| app.request_return(number))).await);
    })
    .await;
    // Requests without a response may have succeeded, so all are sent again.
    let mut returned = BTreeMap::new();
    for number in 0..RETURNS {
        let rma = eventually("the return is made", TIMEOUT, || app.request_return(number)).await;
        returned.insert(rma, number);
    }
    assert_eq!(returned.len(), RETURNS, "two orders got the same return");
    app.until("each order has one return", returns, RETURNS).await;
    let units = "SELECT count(*) AS n FROM return_units WHERE held";
    app.until("each return has one unit", units, RETURNS).await;

    let busy = "SELECT (SELECT count(*) FROM deliveries) + (SELECT count(*) FROM outbox) AS n";
    app.until("nothing is in flight", busy, 0).await;
    let url = app.sandbox.url("/journal?limit=1000&path=/rmas");
    let page: Page = app.client.get(url).send().await.unwrap().json().await.unwrap();
    let mut messages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in &page.entries {
        let rma = entry.body["rma_identifier"].as_str().unwrap().to_owned();
        messages.entry(rma).or_default().insert(entry.headers["webhook-id"].to_string());
    }
    assert!(
        messages.keys().eq(returned.keys()),
        "the merchant receives a message for every return"
    );
    assert!(messages.values().all(|ids| ids.len() == 1), "a repeat is the same message");
    let dead = app.namespace.peek("rma-engine.order.stored.v1.dead").await;
    assert!(dead.is_empty(), "{} events were dead-lettered", dead.len());
}
