//! A service's replica of merchants and revocations, over a real broker and a real database.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::{
    access::{Revocation, Revoked},
    event::Event,
    merchant::{Merchant, MerchantChanged, Settings},
};
use merchants::Merchants;
use messaging::{Broker, Outbox, Topology};
use platform::{Clock, Process, identity::Verifier};
use serde_json::{Value, json};
use testkit::{Database, Namespace, eventually, process};

const TIMEOUT: Duration = Duration::from_secs(300);

async fn database() -> Database {
    Database::create(vec![messaging::MIGRATIONS, merchants::MIGRATIONS]).await
}

fn topology(namespace: &Namespace) -> Topology {
    Topology::empty(&namespace.name)
        .with_subscription("service", MerchantChanged::TYPE)
        .with_subscription("service", Revocation::TYPE)
}

/// A process of the service that has the replica.
struct TestApp {
    process: Process,
    merchants: Arc<Merchants>,
    verifier: Arc<Verifier>,
}

impl TestApp {
    fn start(database: &Database, namespace: &Namespace) -> Self {
        Self::start_with_clock(Clock::system(), database, namespace)
    }

    fn start_with_clock(clock: Clock, database: &Database, namespace: &Namespace) -> Self {
        let process = Process { clock, ..process(database) };
        let broker = Broker::start("service", &process, namespace.settings(), topology(namespace));
        let verifier = Arc::new(Verifier::new("test", Clock::system()));
        let merchants = Merchants::start("service", &process, &broker, &verifier);
        Self { process, merchants, verifier }
    }

    fn name_of_acme(&self) -> Option<String> {
        Some(self.merchants.get(&"acme".parse().unwrap())?.settings.name.clone())
    }

    async fn wait_for_name(&self, name: &str) {
        let what = format!("acme's name is {name}");
        eventually(&what, TIMEOUT, async || (self.name_of_acme()? == name).then_some(())).await;
    }

    async fn wait_for_revocation(&self, client: &str) {
        eventually("the revocation is known", TIMEOUT, async || {
            self.verifier.revocations().covers("any", client).then_some(())
        })
        .await;
    }

    async fn stop(self) {
        assert!(self.process.tasks.drain(TIMEOUT).await, "tasks did not stop");
    }
}

/// A process that publishes auth's events.
struct Auth {
    process: Process,
    outbox: Outbox,
    _database: Database,
}

impl Auth {
    async fn start(namespace: &Namespace) -> Self {
        let database = database().await;
        let process = process(&database);
        let broker = Broker::start("auth", &process, namespace.settings(), topology(namespace));
        let outbox = broker.start_relay("auth", &process);
        Self { process, outbox, _database: database }
    }

    async fn publish<E: Event>(&self, events: impl IntoIterator<Item = E>) {
        let conn = self.process.pool.get().await.unwrap();
        self.outbox.append(&conn, self.process.clock.now(), events).await.unwrap();
    }

    async fn revoke(&self, client: &str, valid_for: TimeDelta) {
        let revoked = Revoked::Client(client.into());
        let expires_at = self.process.clock.now() + valid_for;
        self.publish([Revocation { revoked, expires_at }]).await;
    }

    async fn stop(self) {
        assert!(self.process.tasks.drain(TIMEOUT).await, "tasks did not stop");
    }
}

fn acme(version: i64, name: &str) -> MerchantChanged {
    let mut merchant = Merchant::new("acme".parse().unwrap(), Settings::new(name));
    merchant.version = version;
    MerchantChanged { merchant }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_starts_late_catches_up_and_ignores_older_versions() {
    let namespace = Namespace::create();
    let database = database().await;
    let auth = Auth::start(&namespace).await;
    auth.publish([acme(1, "one"), acme(3, "three"), acme(2, "two")]).await;
    auth.revoke("c1", TimeDelta::hours(1)).await;

    let first = TestApp::start(&database, &namespace);
    first.wait_for_name("three").await;
    first.wait_for_revocation("c1").await;

    // The queue is empty; a second replica loads everything from the database.
    let second = TestApp::start(&database, &namespace);
    second.wait_for_name("three").await;
    second.wait_for_revocation("c1").await;

    auth.publish([acme(4, "four")]).await;
    first.wait_for_name("four").await;
    second.wait_for_name("four").await;
    auth.stop().await;
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_whose_clocks_differ_miss_no_change() {
    let namespace = Namespace::create();
    let database = database().await;
    let auth = Auth::start(&namespace).await;
    let ahead = Clock::from_fn(|| Clock::system().now() + TimeDelta::hours(1));
    let first = TestApp::start_with_clock(ahead, &database, &namespace);
    auth.publish([acme(1, "one")]).await;
    first.wait_for_name("one").await;
    first.stop().await;

    let second = TestApp::start(&database, &namespace);
    second.wait_for_name("one").await;
    auth.publish([acme(2, "two")]).await;
    auth.revoke("c1", TimeDelta::hours(2)).await;
    second.wait_for_name("two").await;
    second.wait_for_revocation("c1").await;
    auth.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_whose_clock_is_ahead_deletes_no_revocation() {
    let namespace = Namespace::create();
    let database = database().await;
    let auth = Auth::start(&namespace).await;
    let ahead = Clock::from_fn(|| Clock::system().now() + TimeDelta::days(31));
    let first = TestApp::start_with_clock(ahead, &database, &namespace);
    auth.revoke("c1", TimeDelta::hours(2)).await;
    eventually("the revocation is handled", TIMEOUT, async || {
        (database.count("SELECT count(*) AS n FROM inbox").await == 1).then_some(())
    })
    .await;
    assert_eq!(database.count("SELECT count(*) AS n FROM replica_revocations").await, 1);
    first.stop().await;

    let second = TestApp::start(&database, &namespace);
    second.wait_for_revocation("c1").await;
    auth.stop().await;
    second.stop().await;
}

/// SQL that inserts a merchant into the replica.
fn insert_merchant(id: &str, document: &Value, replicated_at: &str) -> String {
    format!("INSERT INTO replica_merchants VALUES ('{id}', 1, $${document}$$, {replicated_at});")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_row_does_not_block_others() {
    let namespace = Namespace::create();
    let database = database().await;
    let unreadable = insert_merchant("broken", &json!({"identifier": "broken"}), "now()");
    let readable = insert_merchant("acme", &json!(acme(1, "one").merchant), "now()");
    let revocation = "INSERT INTO replica_revocations VALUES ('x', '{}', 'infinity', now());";
    database.execute_raw(&format!("{unreadable}{readable}{revocation}")).await;
    let app = TestApp::start(&database, &namespace);
    app.wait_for_name("one").await;
    assert!(app.merchants.get(&"broken".parse().unwrap()).is_none());
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_reads_only_recent_rows() {
    let namespace = Namespace::create();
    let database = database().await;
    let old = insert_merchant("acme", &json!(acme(1, "one").merchant), "now() - interval '1 hour'");
    database.execute_raw(&old).await;
    let app = TestApp::start(&database, &namespace);
    app.wait_for_name("one").await;

    // A refresh that read acme's old row again would show its new name with zeta.
    let zeta: domain::access::MerchantId = "zeta".parse().unwrap();
    let document = json!(Merchant::new(zeta.clone(), Settings::new("Zeta")));
    let rename = "UPDATE replica_merchants \
                  SET document = jsonb_set(document, '{settings,name}', '\"read again\"');";
    let insert = insert_merchant("zeta", &document, "clock_timestamp()");
    database.execute_raw(&format!("{rename}{insert}")).await;
    eventually("zeta is known", TIMEOUT, async || app.merchants.get(&zeta)).await;
    assert_eq!(app.name_of_acme().unwrap(), "one");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_replica_keeps_unknown_fields_and_an_equal_version_replaces_it() {
    let namespace = Namespace::create();
    let database = database().await;
    let app = TestApp::start(&database, &namespace);
    let publish = async |name: &str, unknown: &str| {
        let event = acme(1, name);
        let envelope = messaging::Envelope::new("auth", Clock::system().now(), &event);
        let mut event = json!(envelope);
        event["data"]["merchant"]["unknown"] = unknown.into();
        let queue = format!("service.{}", MerchantChanged::TYPE);
        namespace.publish_raw(&queue, &event.to_string()).await;
        app.wait_for_name(name).await;
        let check = format!(
            "DO $$ BEGIN ASSERT (SELECT document ->> 'unknown' = '{unknown}' \
             FROM replica_merchants), 'the unknown field is missing'; END $$"
        );
        database.execute_raw(&check).await;
    };
    eventually("the queue is declared", TIMEOUT, async || {
        let report = app.process.health.report().await;
        (report.parts.get("broker.consuming")? == "ok").then_some(())
    })
    .await;
    publish("one", "first").await;
    publish("uno", "second").await;
    app.stop().await;
}
