//! Nothing is lost when a part of the world goes away.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use diesel_async::SimpleAsyncConnection as _;
use domain::message_kind::MessageKind;
use messaging::Message;
use platform::database::{Connection, Pool};
use serde_json::json;
use testkit::{Database, Namespace, Server, Servers, eventually};
use uuid::Uuid;

use crate::ordering_keys::nothing_overtook;
use crate::stage::{
    Arrival, Replica, SOON, Stage, copy, execute, message, migrations, publish, settings,
    try_number,
};

const LONG: Duration = Duration::from_secs(240);
/// Between two looks at the books.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);
const LANES: usize = 100;

/// Created, and where they are: one snapshot.
pub(crate) const BALANCE: &str = "SELECT (SELECT count(*) FROM delivery_messages) \
     - (SELECT count(*) FROM deliveries) \
     - (SELECT count(DISTINCT delivery) FROM delivery_attempts AS a WHERE settled IS NOT NULL \
        AND NOT EXISTS (SELECT FROM deliveries WHERE id = a.delivery)) AS n";

async fn own_servers() -> Arc<Servers> {
    Arc::new(tokio::task::spawn_blocking(Servers::start).await.unwrap())
}

/// Does something to the servers that takes a while; others go on meanwhile.
async fn meddle(servers: &Arc<Servers>, with: impl FnOnce(&Servers) + Send + 'static) {
    let servers = servers.clone();
    tokio::task::spawn_blocking(move || with(&servers)).await.unwrap();
}

/// Looks at the books all the while `work` goes on: they must balance every time, except that a
/// ledger that is away says nothing.
async fn audited<T>(pool: &Pool, work: impl Future<Output = T>) -> T {
    let mut balanced = 0;
    let audit = async {
        let mut ticks = tokio::time::interval(SAMPLE_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match try_number(pool, BALANCE).await {
                Ok(difference) => assert_eq!(difference, 0, "after {balanced} samples"),
                Err(_away) => continue,
            }
            balanced += 1;
        }
    };
    let done = tokio::select! {
        done = work => done,
        () = audit => unreachable!("an audit has no end"),
    };
    assert!(balanced > 20, "only {balanced} samples");
    done
}

/// How many requests were made more than once, although the merchant accepted every one.
pub(crate) fn repeats(arrivals: &[Arrival]) -> usize {
    let mut seen = HashMap::<&str, usize>::new();
    for arrival in arrivals {
        *seen.entry(&arrival.id).or_default() += 1;
    }
    seen.values().map(|times| times - 1).sum()
}

pub(crate) async fn append_lanes(stage: &Stage, from: usize, to: usize) {
    for number in from..to {
        let batch: Vec<_> = (0..LANES)
            .map(|ordering_key| {
                message(
                    Some(&format!("ordering_key-{ordering_key}")),
                    &format!("ordering_key-{ordering_key}"),
                    number,
                )
            })
            .collect();
        stage.append(&batch).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_lost_everything_loses_no_message() {
    let servers = own_servers().await;
    let namespace = Namespace::create_on(servers.amqp_url(), servers.rabbitmq_api_url());
    let database = Database::create(migrations()).await;
    let short = [("DELIVERY__LEASE", "5s"), ("DELIVERY__DEADLINE", "2s")];
    let stage = Stage::set(database, namespace, &short).await;
    audited(&stage.pool, async {
        append_lanes(&stage, 0, 5).await;
        eventually("some are queued", SOON, async || {
            let queued = "SELECT count(*) AS n FROM deliveries WHERE state = 'queued'";
            (stage.number(queued).await > 0).then_some(())
        })
        .await;
        meddle(&servers, |servers| servers.kill(Server::Rabbitmq)).await;
        append_lanes(&stage, 5, 10).await;
        meddle(&servers, |servers| servers.revive_empty(Server::Rabbitmq)).await;
        stage.settled(LONG).await;
    })
    .await;
    let arrivals = stage.arrivals().await;
    assert_eq!(arrivals.len() - repeats(&arrivals), 1000);
    nothing_overtook(&arrivals);
    stage.leave().await;
    tokio::task::block_in_place(|| drop(servers));
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_of_broker_and_database_lose_nothing_and_repeat_little() {
    let servers = own_servers().await;
    let namespace = Namespace::create_on(servers.amqp_url(), servers.rabbitmq_api_url());
    let database = Database::create_on(&servers.postgres_url(), migrations()).await;
    let stage = Stage::set(database, namespace, &[("DELIVERY__LEASE", "50s")]).await;
    meddle(&servers, |servers| servers.restart(Server::Rabbitmq)).await;
    stage.replica.ready().await;
    audited(&stage.pool, async {
        append_lanes(&stage, 0, 50).await;
        for (turn, server) in [Server::Rabbitmq, Server::Postgres].into_iter().enumerate() {
            eventually("there is something to lose", LONG, async || {
                let left = stage.number("SELECT count(*) AS n FROM deliveries").await;
                (left > 0).then_some(())
            })
            .await;
            meddle(&servers, move |servers| {
                servers.kill(server);
                servers.revive(server);
            })
            .await;
            eventually("the ledger answers", LONG, async || stage.pool.ping().await.ok()).await;
            append_lanes(&stage, 50 + turn * 25, 75 + turn * 25).await;
        }
        stage.settled(LONG).await;
    })
    .await;
    let arrivals = stage.arrivals().await;
    // Two faults; at each, no more than the window of the one endpoint was under way.
    assert!(repeats(&arrivals) <= 2 * 64, "{} repeats", repeats(&arrivals));
    assert_eq!(arrivals.len() - repeats(&arrivals), 10_000);
    nothing_overtook(&arrivals);
    stage.leave().await;
    tokio::task::block_in_place(|| drop(servers));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_does_not_settle_keeps_senders_from_taking_more() {
    let stage = Stage::new(&[
        ("DELIVERY__INITIAL_WINDOW", "64"),
        ("DELIVERY__CONCURRENCY", "4"),
        ("DELIVERY__SLOW_CONCURRENCY", "0"),
    ])
    .await;
    let mut locker = stage.pool.get().await.unwrap();
    locker.batch_execute("BEGIN; LOCK TABLE delivery_counts IN EXCLUSIVE MODE").await.unwrap();
    let messages: Vec<_> = (0..40).map(|number| message(None, "rma.created", number)).collect();
    stage.append(&messages).await;
    // A settler that gives up waiting begins again over another connection.
    let waits = async |not: i64| {
        let waiting = "SELECT COALESCE(max(pid), 0)::int8 AS n FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("settling waits", SOON, async || {
            Some(stage.number(waiting).await).filter(|pid| *pid > 0 && *pid != not)
        })
        .await
    };
    let first = waits(0).await;
    waits(first).await;
    assert_eq!(stage.arrivals().await.len(), 4);
    locker.batch_execute("ROLLBACK").await.unwrap();
    stage.settled(SOON).await;
    assert_eq!(stage.arrivals().await.len(), 40);
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settling_goes_on_while_its_sender_waits_for_a_connection() {
    let stage = Stage::new(&[]).await;
    // From now on the settler has a connection.
    stage.append(&[message(None, "rma.created", 1)]).await;
    stage.settled(SOON).await;
    let mut locker = stage.pool.get().await.unwrap();
    locker.batch_execute("BEGIN; LOCK TABLE delivery_counts IN EXCLUSIVE MODE").await.unwrap();
    stage.append(&[message(None, "rma.created", 2)]).await;
    eventually("settling waits", SOON, async || {
        let waiting = "SELECT count(*) AS n FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        (stage.number(waiting).await > 0).then_some(())
    })
    .await;
    let taken = all_connections(&stage).await;
    publish(&stage, &[copy(&stage, Uuid::now_v7(), &[("recalled", "1")])]).await;
    eventually("the sender has it", SOON, async || {
        stage.namespace.peek(MessageKind::Rma.queue()).await.is_empty().then_some(())
    })
    .await;
    locker.batch_execute("ROLLBACK").await.unwrap();
    stage.settled(SOON).await;
    drop(taken);
    stage.leave().await;
}

/// Leaves the replica none, as if its ledger were away.
async fn all_connections(stage: &Stage) -> Vec<Connection> {
    let mut taken = Vec::new();
    for _ in 0..stage.database.settings().max_connections {
        taken.push(stage.replica.process.pool.get().await.unwrap());
    }
    taken
}

/// Publishes messages past the engine and waits until the sender has them, so many in all. Nobody
/// looks into the queue meanwhile: a copy that was looked at comes again, and is maybe_duplicate.
async fn hand_over(stage: &Stage, messages: &[Message], in_all: u64) {
    publish(stage, messages).await;
    eventually("the sender has them", SOON, async || {
        (stage.namespace.handed_out(MessageKind::Rma.queue()).await >= in_all).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_with_a_doubtful_copy_is_not_sent_without_asking() {
    let stage = Stage::new(&[]).await;
    let taken = all_connections(&stage).await;
    let maybe_duplicate = || copy(&stage, Uuid::now_v7(), &[("recalled", "1")]);
    hand_over(&stage, &[maybe_duplicate()], 1).await;
    // The sender waits for the ledger and finds these two together afterwards. Both were settled by
    // somebody else.
    hand_over(&stage, &[maybe_duplicate(), copy(&stage, Uuid::now_v7(), &[])], 3).await;
    drop(taken);
    let ids = stage.append(&[message(None, "rma.created", 1)]).await;
    stage.settled(SOON).await;
    let arrived: Vec<_> = stage.arrivals().await.into_iter().map(|arrival| arrival.id).collect();
    assert_eq!(arrived, [ids[0].to_string()]);
    stage.leave().await;
}

/// A replica in a process of its own, to be killed.
struct Victim(Child);

impl Victim {
    fn start(stage: &Stage) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "faults::victim", "--nocapture"])
            .env("DELIVERY_TEST_DATABASE", stage.database.url())
            .env("DELIVERY_TEST_AMQP", stage.namespace.amqp_url())
            .env("DELIVERY_TEST_NAMESPACE", &stage.namespace.name)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[expect(clippy::disallowed_methods, reason = "how the parent talks to its victim")]
fn told(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Not a test of its own: the body of a [`Victim`].
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Some(url) = told("DELIVERY_TEST_DATABASE") else { return };
    let (amqp, namespace) = (told("DELIVERY_TEST_AMQP"), told("DELIVERY_TEST_NAMESPACE"));
    let own = settings(&url, &amqp.unwrap(), &namespace.unwrap(), &[]);
    let _replica = Replica::start(process_on(&url), own);
    std::future::pending::<()>().await;
}

fn process_on(url: &str) -> platform::Process {
    let environment = HashMap::from([("TEST__DATABASE__URL".to_owned(), url.to_owned())]);
    let (settings, _) =
        platform::config::load::<HashMap<String, String>>("test", &[], None, environment).unwrap();
    platform::Process {
        pool: Pool::new("victim", &settings.database).unwrap(),
        tasks: platform::Tasks::default(),
        clock: platform::Clock::system(),
        health: platform::health::Health::default(),
        http: settings.http,
    }
}

/// Waits until so many senders take messages off the queue.
async fn senders(stage: &Stage, wanted: usize) {
    eventually("so many senders are there", LONG, async || {
        (stage.namespace.consumers(MessageKind::Rma.queue()).await == wanted).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_sender_loses_nothing_and_repeats_only_what_was_in_its_hands() {
    let stage = Stage::new(&[]).await;
    let signed = "ALTER TABLE delivery_attempts \
                  ADD COLUMN settled_by text DEFAULT current_setting('application_name')";
    execute(&stage.pool, signed).await;
    let by_victim = "SELECT count(*) AS n FROM delivery_attempts \
                     WHERE settled_by = 'backhaul-victim'";
    // Long enough for some to be in the air at any moment.
    stage.behave(json!([{"do": "answer", "status": 200, "delay_ms": 20, "times": "always"}])).await;
    let mut killed_after = Vec::new();
    audited(&stage.pool, async {
        for round in 0..4 {
            let victim = Victim::start(&stage);
            senders(&stage, 2).await;
            let before = stage.number(by_victim).await;
            append_lanes(&stage, round * 25, round * 25 + 25).await;
            let [.., random] = Uuid::now_v7().into_bytes();
            eventually("the victim has done its part", LONG, async || {
                let settled = stage.number(by_victim).await - before;
                (settled > random.into()).then_some(())
            })
            .await;
            victim.kill();
            killed_after.push(random);
            senders(&stage, 1).await;
        }
        stage.settled(LONG).await;
    })
    .await;
    let arrivals = stage.arrivals().await;
    let (repeats, most) = (repeats(&arrivals), killed_after.len() * 64);
    assert!((1..=most).contains(&repeats), "{repeats} repeats, killed after {killed_after:?}");
    assert_eq!(arrivals.len() - repeats, 10_000);
    nothing_overtook(&arrivals);
    stage.leave().await;
}
