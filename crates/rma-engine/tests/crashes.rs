//! The service is killed while it takes orders in, and again while shoppers return them: nothing is
//! lost, and nothing happens twice.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should panic"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use diesel::QueryableByName;
use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl as _;
use domain::event::Event as _;
use domain::order::sample::Orders;
use domain::order::{Order, OrderStored};
use futures_util::future::join_all;
use messaging::{BrokerConnection, Envelope, Message, Publisher, Topology};
use platform::database::Pool;
use platform::{Clock, Service as _, Tasks};
use reqwest::StatusCode;
use sandbox::journal::Page;
use serde_json::{Value, json};
use testkit::{Database, Issuer, Namespace, Replica, eventually, introduce, merchant};

const ORDERS: usize = 3000;
/// Of each of the first orders, one unit comes back.
const RETURNS: usize = 400;
const PATIENCE: Duration = Duration::from_secs(120);

struct Scene {
    replica: Option<Replica>,
    url: String,
    issuer: Issuer,
    sandbox: sandbox::Running,
    client: reqwest::Client,
    pool: Pool,
    link: BrokerConnection,
    topology: Topology,
    namespace: Namespace,
    database: Database,
}

impl Scene {
    async fn set() -> Self {
        let mut own = sandbox::settings::Settings::for_tests().unwrap();
        own.journal.capacity = 10 * RETURNS;
        let database = Database::create(rma_engine::App::migrations()).await;
        let namespace = Namespace::create();
        let topology = Topology::backhaul(&namespace.name);
        let link = BrokerConnection::start(
            &namespace.settings().url,
            &topology,
            "test",
            &Tasks::default(),
        );
        let mut scene = Self {
            replica: None,
            url: String::new(),
            issuer: Issuer::start(),
            sandbox: sandbox::start(&own).unwrap(),
            client: platform::http_client(Duration::from_secs(10)).unwrap(),
            pool: database.pool(),
            link,
            topology,
            namespace,
            database,
        };
        scene.start().await;
        let mut acme = merchant("acme");
        acme.settings.base_url = Some(scene.sandbox.url(""));
        introduce(&scene.namespace, "rma-engine", acme).await;
        scene
            .until("the merchant is copied", "SELECT count(*) AS n FROM replica_merchants", 1)
            .await;
        scene
    }

    async fn start(&mut self) {
        let settings = [
            ("DATABASE__ACQUIRE_TIMEOUT", "5s"),
            ("SEALING__KEYS", testkit::sealing_keys()),
            ("DELIVERY__HTTPS_ONLY", "false"),
            ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
            ("DELIVERY__RETRY_BASE", "100ms"),
            ("DELIVERY__RETRY_FACTOR", "1"),
            ("DELIVERY__DEADLINE", "2s"),
            ("DELIVERY__LEASE", "5s"),
        ];
        let places = (&self.database, &self.namespace, &self.issuer);
        let program = env!("CARGO_BIN_EXE_rma-engine");
        let replica = Replica::start("rma-engine", program, places, &settings).await;
        self.url.clone_from(&replica.url);
        self.replica = Some(replica);
    }

    /// Every snapshot twice, as the very same event.
    async fn publish(&self) {
        let order = order();
        let mut messages = Vec::new();
        for number in 0..ORDERS {
            let mut order = order.clone();
            order.identifier = identifier(number);
            order.items[0].identifier = format!("{}-1", order.identifier);
            let event = OrderStored { merchant: "acme".parse().unwrap(), order };
            let envelope = Envelope::new("order-intake", Clock::system().now(), &event);
            let message = Message {
                exchange: self.topology.events_exchange(),
                routing_key: OrderStored::TYPE.to_owned(),
                id: envelope.id.to_string(),
                content_type: "application/cloudevents+json",
                headers: Vec::new(),
                body: serde_json::to_vec(&envelope).unwrap(),
            };
            messages.extend([message.clone(), message]);
        }
        let words = Publisher::new(self.link.clone()).publish(&messages).await.unwrap();
        assert!(words.iter().all(Result::is_ok));
    }

    /// Asks for a return of an order's first unit; says which it is, if there is an answer.
    async fn give_back(&self, number: usize) -> Option<String> {
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
        let answer = request.send().await.ok()?;
        if answer.status() != StatusCode::CREATED {
            return None;
        }
        let rma: Value = answer.json().await.ok()?;
        Some(rma["rma_identifier"].as_str().unwrap().to_owned())
    }

    async fn count(&self, query: &str) -> i64 {
        #[derive(QueryableByName)]
        struct Counted {
            #[diesel(sql_type = BigInt)]
            n: i64,
        }
        let mut conn = self.pool.get().await.unwrap();
        diesel::sql_query(query).get_result::<Counted>(&mut conn).await.unwrap().n
    }

    async fn until(&self, what: &str, query: &str, expected: usize) {
        let expected = i64::try_from(expected).unwrap();
        eventually(what, PATIENCE, || async {
            (self.count(query).await == expected).then_some(())
        })
        .await;
    }

    /// Waits for the first few, kills the service in the middle of the rest, and starts it again.
    async fn kill_amid(&mut self, counting: &str, all: usize, doing: impl AsyncFnOnce(&Self)) {
        let replica = self.replica.take();
        let scene = &*self;
        let kill = async {
            eventually("it is in the middle of it", PATIENCE, || async {
                (scene.count(counting).await > 10).then_some(())
            })
            .await;
            drop(replica);
        };
        tokio::join!(doing(scene), kill);
        assert!(self.count(counting).await < i64::try_from(all).unwrap(), "too late");
        self.start().await;
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
async fn killed_in_the_middle_it_loses_nothing_and_repeats_nothing() {
    let mut scene = Scene::set().await;
    let orders = "SELECT count(*) AS n FROM orders";
    scene.kill_amid(orders, ORDERS, async |scene| scene.publish().await).await;
    scene.until("every order is taken in", orders, ORDERS).await;

    let returns = "SELECT count(*) AS n FROM returns";
    scene
        .kill_amid(returns, RETURNS, async |scene| {
            drop(join_all((0..RETURNS).map(|number| scene.give_back(number))).await);
        })
        .await;
    // Nobody knows which requests had their effect, so all of them are sent again.
    let mut answers = BTreeMap::new();
    for number in 0..RETURNS {
        let answer = eventually("the return is made", PATIENCE, || scene.give_back(number)).await;
        answers.insert(answer, number);
    }
    assert_eq!(answers.len(), RETURNS, "two orders were answered with one return");
    scene.until("each order has one return", returns, RETURNS).await;
    let units = "SELECT count(*) AS n FROM return_units WHERE held";
    scene.until("each return has one unit", units, RETURNS).await;

    let busy = "SELECT (SELECT count(*) FROM deliveries) + (SELECT count(*) FROM outbox) AS n";
    scene.until("nothing is under way", busy, 0).await;
    let url = scene.sandbox.url("/journal?limit=1000&path=/rmas");
    let page: Page = scene.client.get(url).send().await.unwrap().json().await.unwrap();
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in &page.entries {
        let rma = entry.body["rma_identifier"].as_str().unwrap().to_owned();
        told.entry(rma).or_default().insert(entry.headers["webhook-id"].to_string());
    }
    assert!(told.keys().eq(answers.keys()), "a merchant hears of every return there is");
    assert!(told.values().all(|ids| ids.len() == 1), "a repeat is the same message");
    let dead = scene.namespace.peek("rma-engine.order.stored.v1.dead").await;
    assert!(dead.is_empty(), "{} events were put aside", dead.len());
}
