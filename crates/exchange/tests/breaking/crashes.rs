//! Two replicas receive a thousand confirmations of one order and are killed meanwhile: the merchant
//! gets one exchange order, and every other return gets a failure event.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot continue should panic"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use domain::event::Event;
use domain::exchange::{ExchangeFailed, ExchangePlaced, FailureReason};
use domain::returns::ReturnConfirmed;
use messaging::{BrokerConnection, Envelope, Subscription, Topology};
use platform::database::Pool;
use platform::{Clock, Service as _, Tasks};
use sandbox::journal::{Entry, Page};
use serde_json::{Value, json};
use testkit::{
    CRASH_SETTINGS, Database, Issuer, Namespace, Replica, eventually, merchant, publish_merchant,
};

const RETURNS: usize = 500;
const HALF: usize = RETURNS / 2;
const TIMEOUT: Duration = Duration::from_secs(300);

struct TestApp {
    replicas: [Option<Replica>; 2],
    issuer: Issuer,
    sandbox: sandbox::Running,
    client: reqwest::Client,
    pool: Pool,
    connection: BrokerConnection,
    topology: Topology,
    namespace: Namespace,
    database: Database,
}

impl TestApp {
    async fn start_both() -> Self {
        let sandbox = sandbox::start(&sandbox::settings::Settings::for_tests().unwrap()).unwrap();
        let database = Database::create(exchange::App::migrations()).await;
        let namespace = Namespace::create();
        let topology = Topology::backhaul(&namespace.name);
        let connection = BrokerConnection::start(
            &namespace.settings().url,
            &topology,
            "test",
            &Tasks::default(),
        );
        let mut app = Self {
            replicas: [None, None],
            issuer: Issuer::start(),
            sandbox,
            client: platform::http_client(Duration::from_secs(300)).unwrap(),
            pool: database.pool(),
            connection,
            topology,
            namespace,
            database,
        };
        app.start_replica(0).await;
        app.start_replica(1).await;
        let mut acme = merchant("acme");
        acme.settings.base_url = Some(app.sandbox.url(""));
        publish_merchant(&app.namespace, "exchange", acme).await;
        eventually("the merchant is copied", TIMEOUT, || async {
            (app.count("SELECT count(*) AS n FROM replica_merchants").await == 1).then_some(())
        })
        .await;
        app
    }

    async fn start_replica(&mut self, number: usize) {
        let placing = [("PLACING__MAX_CONCURRENCY", "2"), ("PLACING__LEASE", "2s")];
        let settings = [&CRASH_SETTINGS[..], &placing[..]].concat();
        let dependencies = (&self.database, &self.namespace, &self.issuer);
        let program = env!("CARGO_BIN_EXE_exchange");
        self.replicas[number] =
            Some(Replica::start("exchange", program, dependencies, &settings).await);
    }

    async fn request_sandbox(&self, method: reqwest::Method, path: &str, body: &Value) -> Value {
        let request = self.client.request(method, self.sandbox.url(path)).json(body);
        serde_json::from_slice(&request.send().await.unwrap().bytes().await.unwrap())
            .unwrap_or_default()
    }

    async fn arrivals(&self) -> Vec<Entry> {
        let path = "/journal?limit=1000&path=/exchange_orders";
        let page = self.request_sandbox(reqwest::Method::GET, path, &json!({})).await;
        serde_json::from_value::<Page>(page).unwrap().entries
    }

    async fn count(&self, query: &str) -> i64 {
        testkit::count(&mut self.pool.get().await.unwrap(), query).await
    }

    async fn count_already_exchanged(&self) -> i64 {
        let query = "SELECT count(*) AS n FROM confirmations WHERE state = 'already_exchanged'";
        self.count(query).await
    }

    /// Publishes every return twice: half with the same event id, half with a new one.
    async fn confirm(&self, returns: Range<usize>) {
        let events: Vec<_> = returns.map(confirmed).collect();
        let mut envelopes = Vec::new();
        for (number, event) in events.iter().enumerate() {
            let new = || Envelope::new("rma-engine", Clock::system().now(), event);
            let first = new();
            let second = if number % 2 == 0 { new() } else { first.clone() };
            envelopes.extend([first, second]);
        }
        self.namespace.publish_events(&envelopes).await;
    }

    /// Receives events of a type until the expected number of ids has arrived.
    async fn received<E: Event>(&self, expected: usize) -> Vec<E> {
        let queue = self.topology.subscription_queue("rma-engine", E::TYPE);
        let mut received = BTreeMap::new();
        let listening = async {
            let mut subscription = Subscription::open(&self.connection, &queue, 500).await.unwrap();
            while received.len() < expected {
                let batch = subscription.next(500).await.unwrap();
                for incoming in &batch {
                    let event: Envelope<E> = serde_json::from_slice(&incoming.body).unwrap();
                    received.insert(event.id, event.data);
                }
                subscription.ack_up_to(batch.last().unwrap().delivery_tag).await.unwrap();
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, listening).await;
        assert!(waited.is_ok(), "only {} of {expected} events {}", received.len(), E::TYPE);
        received.into_values().collect()
    }
}

fn confirmed(number: usize) -> ReturnConfirmed {
    let address = json!({
        "name": "Ada Byron", "street1": "1 Long Road", "city": "London", "country_code": "GB",
    });
    let variant =
        json!({"sku": "TEE-M", "title": "Shirt, medium", "unit_price_amount_cents": 2500});
    let event = json!({
        "merchant": "acme", "rma_identifier": format!("R-{number}"), "original_order_id": "1001",
        "currency": "USD", "is_gift": false, "customer": {"identifier": "c-1"},
        "shipping_address": address, "billing_address": address,
        "units": [{
            "order_identifier": "1001", "order_line_item_identifier": "L1", "unit": number + 1,
            "sku": "TEE-S", "title": "Shirt", "product_identifier": "P-1",
            "variant_identifier": "TEE", "unit_price_amount_cents": 2500,
            "product_amount_cents": 2500, "discount_amount_cents": 0, "tax_amount_cents": 0,
            "replacement": {"resolution": "exchange", "variant": variant},
        }],
        "confirmed_at": "2026-03-01T00:00:00Z",
    });
    serde_json::from_value(event).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_replicas_place_one_order_and_fail_every_other_return() {
    let mut app = TestApp::start_both().await;
    let hang = json!({"path": "/exchange_orders", "steps": [{"do": "hang"}]});
    app.request_sandbox(reqwest::Method::PUT, "/behaviour", &hang).await;
    app.confirm(0..HALF).await;

    // The merchant has received the order and has not responded, so its outcome is unknown.
    eventually("the order is at the merchant", TIMEOUT, || async {
        (!app.arrivals().await.is_empty()).then_some(())
    })
    .await;
    app.replicas = [None, None];
    app.start_replica(0).await;
    app.start_replica(1).await;

    // A replica dies while it rejects the other returns.
    let before = app.count_already_exchanged().await;
    app.confirm(HALF..RETURNS).await;
    eventually("some returns were rejected", TIMEOUT, || async {
        (app.count_already_exchanged().await > before + 10).then_some(())
    })
    .await;
    app.replicas[0] = None;
    assert!(app.count_already_exchanged().await < i64::try_from(RETURNS).unwrap() - 1, "too late");
    app.start_replica(0).await;

    let placed = app.received::<ExchangePlaced>(1).await.remove(0);
    assert_eq!(placed.exchange_order_identifier, "EX-1001");
    let failed = app.received::<ExchangeFailed>(RETURNS - 1).await;
    let mut items = failed.iter().flat_map(|event| &event.items);
    assert!(items.all(|item| item.reason == FailureReason::AlreadyExchanged));
    let mut notified: BTreeSet<_> = failed.into_iter().map(|event| event.rma_identifier).collect();
    assert!(notified.insert(placed.rma_identifier), "a return was both placed and failed");
    assert_eq!(notified.len(), RETURNS, "a return has no outcome");

    let busy = "SELECT (SELECT count(*) FROM confirmations WHERE state = 'waiting') \
                + (SELECT count(*) FROM deliveries) + (SELECT count(*) FROM outbox) AS n";
    eventually("nothing is in flight", TIMEOUT, || async {
        (app.count(busy).await == 0).then_some(())
    })
    .await;
    let arrivals = app.arrivals().await;
    let ids: BTreeSet<_> =
        arrivals.iter().map(|entry| entry.headers["webhook-id"].to_string()).collect();
    let bodies: BTreeSet<_> = arrivals.iter().map(|entry| entry.body.to_string()).collect();
    assert!(arrivals.len() > 1, "the order in doubt was sent again");
    assert_eq!((ids.len(), bodies.len()), (1, 1), "repeats are the same message");
    assert_eq!(app.count("SELECT count(*) AS n FROM exchange_orders").await, 1);
}
