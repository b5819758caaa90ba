//! A service's copy of auth's word, over a real broker and a real database.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::{sync::Arc, time::Duration};

use domain::{
    access::{Revocation, Revoked},
    event::Event as _,
    merchant::{Merchant, MerchantChanged, Settings},
};
use merchants::Merchants;
use messaging::{Broker, Outbox, Topology};
use platform::{Clock, Process, identity::Verifier};
use testkit::{Database, Namespace, eventually, process};

const SOON: Duration = Duration::from_secs(20);

struct Listener {
    process: Process,
    merchants: Arc<Merchants>,
    verifier: Arc<Verifier>,
}

fn topology(namespace: &Namespace) -> Topology {
    let topology = Topology::empty(&namespace.name);
    topology
        .with_subscription("listener", MerchantChanged::TYPE)
        .with_subscription("listener", Revocation::TYPE)
}

fn listen(database: &Database, namespace: &Namespace) -> Listener {
    listen_by(Clock::system(), database, namespace)
}

fn listen_by(clock: Clock, database: &Database, namespace: &Namespace) -> Listener {
    let process = Process { clock, ..process(database) };
    let broker = Broker::start("listener", &process, namespace.settings(), topology(namespace));
    let verifier = Arc::new(Verifier::new("test", Clock::system()));
    let merchants = Merchants::start("listener", &process, &broker, &verifier);
    Listener { process, merchants, verifier }
}

fn merchant(version: i64, name: &str) -> MerchantChanged {
    let mut merchant = Merchant::new("acme".parse().unwrap(), Settings::new(name));
    merchant.version = version;
    MerchantChanged { merchant }
}

async fn migrated() -> Database {
    Database::create(vec![messaging::MIGRATIONS, merchants::MIGRATIONS]).await
}

async fn tell<E: domain::event::Event>(speaker: &Process, outbox: &Outbox, events: Vec<E>) {
    let mut conn = speaker.pool.get().await.unwrap();
    outbox.append(&mut conn, speaker.clock.now(), events).await.unwrap();
}

fn named(listener: &Listener) -> Option<String> {
    Some(listener.merchants.get(&"acme".parse().unwrap())?.settings.name.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_starts_late_catches_up_and_only_newer_versions_count() {
    let namespace = Namespace::create();
    let (speaker_database, database) = (migrated().await, migrated().await);
    let speaker = process(&speaker_database);
    let broker = Broker::start("auth", &speaker, namespace.settings(), topology(&namespace));
    let outbox = broker.start_relay("auth", &speaker);
    let until = speaker.clock.now() + chrono::TimeDelta::hours(1);
    tell(&speaker, &outbox, vec![merchant(1, "one"), merchant(3, "three"), merchant(2, "two")])
        .await;
    tell(
        &speaker,
        &outbox,
        vec![Revocation { revoked: Revoked::Client("c1".into()), expires_at: until }],
    )
    .await;

    let first = listen(&database, &namespace);
    eventually("the late service knows", SOON, async || (named(&first)? == "three").then_some(()))
        .await;
    let revoked =
        |listener: &Listener| listener.verifier.revocations().covers("any", "c1").then_some(());
    eventually("the revocation is known", SOON, async || revoked(&first)).await;

    // Another replica hears nothing from the queue, yet knows; so does one that was restarted.
    let second = listen(&database, &namespace);
    eventually("the replica knows", SOON, async || (named(&second)? == "three").then_some(()))
        .await;
    eventually("the replica knows the revocation", SOON, async || revoked(&second)).await;

    tell(&speaker, &outbox, vec![merchant(4, "four")]).await;
    for listener in [&first, &second] {
        eventually("both follow", SOON, async || (named(listener)? == "four").then_some(())).await;
    }
    for process in [speaker, first.process, second.process] {
        assert!(process.tasks.drain(Duration::from_secs(10)).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_whose_clocks_differ_miss_nothing() {
    let namespace = Namespace::create();
    let (speaker_database, database) = (migrated().await, migrated().await);
    let speaker = process(&speaker_database);
    let broker = Broker::start("auth", &speaker, namespace.settings(), topology(&namespace));
    let outbox = broker.start_relay("auth", &speaker);
    let ahead = Clock::from_fn(|| Clock::system().now() + chrono::TimeDelta::hours(1));
    let first = listen_by(ahead, &database, &namespace);
    tell(&speaker, &outbox, vec![merchant(1, "one")]).await;
    eventually("the first knows", SOON, async || (named(&first)? == "one").then_some(())).await;
    assert!(first.process.tasks.drain(Duration::from_secs(10)).await);

    let second = listen(&database, &namespace);
    eventually("the second knows", SOON, async || (named(&second)? == "one").then_some(())).await;
    let until = speaker.clock.now() + chrono::TimeDelta::hours(2);
    tell(&speaker, &outbox, vec![merchant(2, "two")]).await;
    tell(
        &speaker,
        &outbox,
        vec![Revocation { revoked: Revoked::Client("c1".into()), expires_at: until }],
    )
    .await;
    eventually("the second follows", SOON, async || (named(&second)? == "two").then_some(())).await;
    eventually("the second knows the revocation", SOON, async || {
        second.verifier.revocations().covers("any", "c1").then_some(())
    })
    .await;
    for process in [speaker, second.process] {
        assert!(process.tasks.drain(Duration::from_secs(10)).await);
    }
}

/// A copy of a merchant, written by nobody.
fn copy(id: &str, document: &serde_json::Value, replicated_at: &str) -> String {
    format!("INSERT INTO replica_merchants VALUES ('{id}', 1, $${document}$$, {replicated_at});")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_cannot_be_read_keeps_no_other_away() {
    let (namespace, database) = (Namespace::create(), migrated().await);
    let whole = serde_json::json!(merchant(1, "one").merchant);
    let broken = copy("broken", &serde_json::json!({"identifier": "broken"}), "now()");
    let revoked = "INSERT INTO replica_revocations VALUES ('x', '{}', 'infinity', now());";
    database.execute_raw(&format!("{broken}{}{revoked}", copy("acme", &whole, "now()"))).await;
    let listener = listen(&database, &namespace);
    eventually("acme is known", SOON, async || (named(&listener)? == "one").then_some(())).await;
    assert!(listener.merchants.get(&"broken".parse().unwrap()).is_none());
    assert!(listener.process.tasks.drain(Duration::from_secs(10)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_long_after_it_came_is_not_read_again() {
    let (namespace, database) = (Namespace::create(), migrated().await);
    let whole = serde_json::json!(merchant(1, "one").merchant);
    database.execute_raw(&copy("acme", &whole, "now() - interval '1 hour'")).await;
    let listener = listen(&database, &namespace);
    eventually("acme is known", SOON, async || (named(&listener)? == "one").then_some(())).await;

    // Whoever reads acme's old row again sees another name no later than the new merchant.
    let zeta = serde_json::json!(Merchant::new("zeta".parse().unwrap(), Settings::new("Zeta")));
    let renamed = "UPDATE replica_merchants \
                   SET document = jsonb_set(document, '{settings,name}', '\"read again\"');";
    database.execute_raw(&format!("{renamed}{}", copy("zeta", &zeta, "clock_timestamp()"))).await;
    let zeta = "zeta".parse().unwrap();
    eventually("zeta is known", SOON, async || listener.merchants.get(&zeta)).await;
    assert_eq!(named(&listener).unwrap(), "one");
    assert!(listener.process.tasks.drain(Duration::from_secs(10)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_holds_all_that_was_told_and_the_same_version_told_again_replaces_it() {
    let namespace = Namespace::create();
    let database = migrated().await;
    let listener = listen(&database, &namespace);
    let say = async |name: &str, novelty: &str| {
        let event = merchant(1, name);
        let envelope = messaging::Envelope::new("auth", Clock::system().now(), &event);
        let mut letter = serde_json::json!(envelope);
        letter["data"]["merchant"]["novelty"] = novelty.into();
        let queue = format!("listener.{}", MerchantChanged::TYPE);
        namespace.publish_raw(&queue, &letter.to_string()).await;
        eventually("it is known", SOON, async || (named(&listener)? == name).then_some(())).await;
        let check = format!(
            "DO $$ BEGIN ASSERT (SELECT document ->> 'novelty' = '{novelty}' \
             FROM replica_merchants), 'the copy lacks a part'; END $$"
        );
        database.execute_raw(&check).await;
    };
    eventually("the queue is there", SOON, async || {
        let report = listener.process.health.report().await;
        (report.parts.get("broker.consuming")? == "ok").then_some(())
    })
    .await;
    say("one", "first").await;
    say("uno", "second").await;
    assert!(listener.process.tasks.drain(Duration::from_secs(10)).await);
}
