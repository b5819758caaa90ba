//! The database is restored from an older backup, or is new: the events that other services have kept
//! bring it up to date.

use chrono::TimeDelta;
use diesel::sql_types::Text;
use domain::warehouse::UnitReceived;
use messaging::{Broker, Outbox, Topology};
use platform::Process;
use testkit::{DELIVERY_SETTINGS, Database, Namespace, republish};
use uuid::Uuid;

use super::projecting::order;
use super::*;

/// Orders after the backup.
const ORDERS: usize = 1000;
/// Receipts after the backup, each of a return before it.
const RECEIPTS: usize = 100;

/// The relay of the services that publish orders and receipts.
struct EventSource {
    process: Process,
    outbox: Outbox,
    _database: Database,
}

impl EventSource {
    async fn start(namespace: &Namespace) -> Self {
        let database = Database::create(vec![messaging::MIGRATIONS]).await;
        let process = testkit::process(&database);
        let topology = Topology::empty(&namespace.name);
        let broker = Broker::start("source", &process, namespace.settings(), topology);
        let outbox = broker.start_relay("source", &process);
        Self { process, outbox, _database: database }
    }

    async fn append<E: Event>(&self, events: impl IntoIterator<Item = E>) {
        let conn = self.process.pool.get().await.unwrap();
        self.outbox.append(&conn, Clock::system().now(), events).await.unwrap();
    }

    async fn append_orders(&self, orders: impl IntoIterator<Item = Order>) {
        let merchant = || "acme".parse().unwrap();
        self.append(orders.into_iter().map(|order| OrderStored {
            merchant: merchant(),
            order,
            is_reset: false,
        }))
        .await;
    }
}

#[derive(QueryableByName)]
struct Digest {
    #[diesel(sql_type = Text)]
    digest: String,
}

impl TestApp {
    /// Stops the service and starts it on another database.
    async fn restart_on(self, database: Database) -> Self {
        let Self { service, issuer, client, sandbox, .. } = self;
        let (_, namespace) = service.stop().await;
        let proof_keys = [("SHOPPER__PROOF_KEYS", testkit::sealing_keys())];
        let settings = issuer.settings().into_iter().chain(DELIVERY_SETTINGS).chain(proof_keys);
        let settings: Vec<_> = settings.collect();
        let clock = Clock::system();
        let service = TestService::on::<App>(&settings, clock, database, namespace).await;
        let pool = service.database.pool();
        Self { service, issuer, client, sandbox, pool }
    }

    async fn wait_for_orders(&self, query: &str, expected: usize) {
        let expected = i64::try_from(expected).unwrap();
        eventually("the orders are projected", SOON, || async {
            (self.number(query).await == expected).then_some(())
        })
        .await;
    }

    /// The whole projection of orders.
    async fn projection(&self) -> String {
        let query = "SELECT md5(string_agg(orders::text, '' ORDER BY merchant, identifier)) AS digest \
                     FROM orders";
        let mut conn = self.pool.get().await.unwrap();
        diesel::sql_query(query).get_result::<Digest>(&mut conn).await.unwrap().digest
    }

    /// Waits until the first unit of every return is received.
    async fn wait_for_receipts(&self, rmas: &[String]) {
        for rma in rmas {
            eventually("the unit is received", SOON, || async {
                let shown = self.show(rma).await;
                (shown["units"][0]["receiving_status"] == "RECEIVED").then_some(())
            })
            .await;
        }
    }
}

fn received(number: usize, rma: &str) -> UnitReceived {
    UnitReceived {
        merchant: "acme".parse().unwrap(),
        rma_identifier: rma.to_owned(),
        receipt: Uuid::new_v4(),
        asn_number: "ASN-1".to_owned(),
        reference_line_identifier: Some(format!("R{number}-1")),
        sku: None,
        upc: None,
        unit_identifier: format!("LPN-{number}"),
        condition: Some("N".to_owned()),
        reject_reason: None,
        received_at: Clock::system().now(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_and_a_new_database_catch_up_with_the_kept_events() {
    let app = TestApp::with_settings(&[], |acme| acme.settings.managed_receiving = true).await;
    let source = EventSource::start(&app.service.namespace).await;
    let all = "SELECT count(*) AS n FROM orders";
    source.append_orders((0..RECEIPTS).map(|number| order(&format!("R{number}"), 2))).await;
    app.wait_for_orders(all, RECEIPTS).await;
    let mut rmas = Vec::new();
    for number in 0..RECEIPTS {
        rmas.push(app.start_return(&refund_of(&format!("R{number}"), &[1])).await);
    }
    let backup = app.service.database.back_up();

    let orders: Vec<_> = (0..ORDERS).map(|number| order(&format!("N{number}"), 1)).collect();
    source.append_orders(orders.iter().cloned()).await;
    source.append(rmas.iter().enumerate().map(|(number, rma)| received(number, rma))).await;
    // Every tenth order has a second snapshot, with another unit.
    let second = |first: &Order| {
        let mut second = order(&first.identifier, 2);
        second.updated_at = first.updated_at + TimeDelta::minutes(1);
        second
    };
    source.append_orders(orders.iter().step_by(10).map(second)).await;
    let changed = "SELECT count(*) AS n FROM orders WHERE document::jsonb #>> '{items,0,quantity}' = '2' \
                   AND identifier LIKE 'N%'";
    app.wait_for_orders(all, ORDERS + RECEIPTS).await;
    app.wait_for_orders(changed, ORDERS / 10).await;
    app.wait_for_receipts(&rmas).await;
    let expected = app.projection().await;

    let database = app.service.database.restore(&backup).await;
    let restored = app.restart_on(database).await;
    assert_eq!(restored.number(all).await, i64::try_from(RECEIPTS).unwrap());
    assert_ne!(restored.projection().await, expected);
    republish(&source.process.pool).await;
    restored.wait_for_orders(all, ORDERS + RECEIPTS).await;
    restored.wait_for_orders(changed, ORDERS / 10).await;
    restored.wait_for_receipts(&rmas).await;
    assert_eq!(restored.projection().await, expected);

    let fresh = restored.restart_on(Database::create(App::migrations()).await).await;
    assert_eq!(fresh.number(all).await, 0);
    republish(&source.process.pool).await;
    fresh.wait_for_orders(all, ORDERS + RECEIPTS).await;
    fresh.wait_for_orders(changed, ORDERS / 10).await;
    assert_eq!(fresh.projection().await, expected);
    assert!(source.process.tasks.drain(SOON).await);
}
