//! What the ledger does when two look at it at once, and by clocks that differ.

use std::num::NonZeroU32;
use std::time::Duration;

use chrono::TimeDelta;
use diesel::{QueryableByName, sql_types::Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use domain::message_kind::MessageKind;
use platform::{Clock, Timestamp, database::Pool};
use testkit::{Database, eventually};
use uuid::Uuid;

use super::{Due, Log, NewMessage, Settlement, Superseded, Tried, Verdict, Windows};
use crate::job::FRESH;
use crate::outcome::Signal;
use crate::window::Limits;

const SOON: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_secs(300);

/// A ledger with room for today.
async fn ledger(now: Timestamp) -> (Database, Pool) {
    let database = Database::create(vec![crate::MIGRATIONS]).await;
    let pool = database.pool();
    let log = Log { retention_days: 30 };
    log.keep(&mut pool.get().await.unwrap(), now).await.unwrap();
    (database, pool)
}

fn message(ordering_key: Option<&str>) -> NewMessage {
    NewMessage {
        merchant: "acme".parse().unwrap(),
        kind: MessageKind::Rma,
        ordering_key: ordering_key.map(str::to_owned),
        event: "rma.created".to_owned(),
        body: "{}".into(),
    }
}

async fn append(conn: &mut AsyncPgConnection, now: Timestamp, ordering_key: Option<&str>) -> Uuid {
    super::append(conn, now, &[message(ordering_key)]).await.unwrap()[0]
}

/// A message that is dead already.
async fn append_dead(conn: &mut AsyncPgConnection, now: Timestamp, ordering_key: &str) -> Uuid {
    let id = append(conn, now, Some(ordering_key)).await;
    let dead = settlement(id, Verdict::Dead, Signal::Hold, now);
    super::settle(conn, &mut windows(), &[dead]).await.unwrap();
    id
}

/// The messages that a dispatcher finds at this moment.
async fn pick(conn: &mut AsyncPgConnection, now: Timestamp) -> Vec<Uuid> {
    let due = Due { now, lease: LEASE, initial_window: 8, closed: (&[], &[]), most: 100 };
    let look = super::pick(conn, due).await.unwrap();
    look.picked.iter().map(|(picked, _)| picked.id).collect()
}

fn windows() -> Windows {
    let size = |size| NonZeroU32::new(size).unwrap();
    Windows::new(Limits { initial: size(8), largest: size(64), probe_pause: LEASE })
}

/// The first attempt at a message.
fn settlement(id: Uuid, verdict: Verdict, signal: Signal, at: Timestamp) -> Settlement {
    let (detail, answer) = (String::new(), String::new());
    let latency = Duration::from_millis(5);
    let tried = Tried { at, latency, outcome: "rejected", status: None, detail, answer };
    Settlement {
        id,
        merchant: "acme".to_owned(),
        kind: MessageKind::Rma,
        round: 0,
        number: 1,
        verdict,
        signal,
        tries: vec![tried],
        disabled_at_version: None,
    }
}

#[derive(QueryableByName)]
struct Said {
    #[diesel(sql_type = Text)]
    text: String,
}

async fn ask(conn: &mut AsyncPgConnection, query: &str) -> String {
    diesel::sql_query(query).get_result::<Said>(conn).await.unwrap().text
}

/// Waits until somebody waits for a row that another one holds.
async fn somebody_waits(pool: &Pool) {
    eventually("somebody waits for a row", SOON, async || {
        let waiting = "SELECT count(*)::text AS text FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        (ask(&mut pool.get().await.unwrap(), waiting).await != "0").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_message_that_is_settled_while_it_is_picked_is_not_queued() {
    let now = Clock::system().now();
    let (_database, pool) = ledger(now).await;
    let (mut settler, mut dispatcher) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let id = append(&mut settler, now, None).await;
    settler.batch_execute("BEGIN").await.unwrap();
    let retry = Verdict::Retry(now + TimeDelta::hours(1));
    let batch = [settlement(id, retry, Signal::Hold, now)];
    super::settle(&mut settler, &mut windows(), &batch).await.unwrap();
    let settling = async {
        somebody_waits(&pool).await;
        settler.batch_execute("COMMIT").await.unwrap();
    };
    let (picked, ()) = tokio::join!(pick(&mut dispatcher, now), settling);
    assert!(picked.is_empty());
    let state = "SELECT state || ' ' || attempts AS text FROM deliveries";
    assert_eq!(ask(&mut dispatcher, state).await, "ready 1");
}

#[tokio::test]
async fn a_late_410_of_an_older_version_opens_no_endpoint() {
    let now = Clock::system().now();
    let (_database, pool) = ledger(now).await;
    let (mut conn, mut windows) = (pool.get().await.unwrap(), windows());
    for version in [2, 1] {
        let mut gone = settlement(super::new_id(now), Verdict::Dead, Signal::Shrink, now);
        gone.disabled_at_version = Some(version);
        super::settle(&mut conn, &mut windows, &[gone]).await.unwrap();
    }
    let gone = "SELECT disabled_at_version::text AS text FROM delivery_endpoints";
    assert_eq!(ask(&mut conn, gone).await, "2");
}

#[tokio::test]
async fn a_success_by_a_clock_that_is_ahead_closes_no_endpoint() {
    let now = Clock::system().now();
    let (_database, pool) = ledger(now).await;
    let (mut conn, mut windows) = (pool.get().await.unwrap(), windows());
    let ahead = now + TimeDelta::seconds(30);
    let success = settlement(super::new_id(now), Verdict::Delivered, Signal::Grow, ahead);
    super::settle(&mut conn, &mut windows, &[success]).await.unwrap();
    let id = append(&mut conn, now, None).await;
    assert_eq!(pick(&mut conn, now).await, [id]);
}

#[tokio::test]
async fn what_is_given_back_is_due_when_another_copy_would_be_asked_about() {
    let now = Clock::system().now();
    let (_database, pool) = ledger(now).await;
    let mut conn = pool.get().await.unwrap();
    let id = append(&mut conn, now, None).await;
    assert_eq!(pick(&mut conn, now).await, [id]);
    super::release_claim(&mut conn, now, &[id]).await.unwrap();
    assert!(pick(&mut conn, now + FRESH - TimeDelta::milliseconds(1)).await.is_empty());
    assert_eq!(pick(&mut conn, now + FRESH).await, [id]);
}

#[tokio::test]
async fn a_successor_is_not_queued_while_its_predecessor_is_replayed() {
    let now = Clock::system().now();
    let (_database, pool) = ledger(now).await;
    let (mut replayer, mut dispatcher) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let first = append_dead(&mut replayer, now, "rma:1").await;
    let second = append(&mut replayer, now, Some("rma:1")).await;
    replayer.batch_execute("BEGIN").await.unwrap();
    let revived = super::revive(&mut replayer, now, &[first], Superseded::Skipped).await.unwrap();
    assert_eq!(revived, [first]);
    let replaying = async {
        somebody_waits(&pool).await;
        replayer.batch_execute("COMMIT").await.unwrap();
    };
    let (picked, ()) = tokio::join!(pick(&mut dispatcher, now), replaying);
    assert!(picked.is_empty());
    assert_eq!(pick(&mut dispatcher, now).await, [first]);
    let mut delivered = settlement(first, Verdict::Delivered, Signal::Grow, now);
    delivered.round = 1;
    super::settle(&mut replayer, &mut windows(), &[delivered]).await.unwrap();
    assert_eq!(pick(&mut dispatcher, now).await, [second]);
}

#[tokio::test]
async fn what_is_written_during_a_replay_waits_for_it() {
    let now = Clock::system().now();
    let (_database, pool) = ledger(now).await;
    let (mut replayer, mut writer) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let first = append_dead(&mut replayer, now, "rma:1").await;
    replayer.batch_execute("BEGIN").await.unwrap();
    super::revive(&mut replayer, now, &[first], Superseded::Skipped).await.unwrap();
    let replaying = async {
        somebody_waits(&pool).await;
        replayer.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(append(&mut writer, now, Some("rma:1")), replaying);
    assert_eq!(pick(&mut writer, now).await, [first]);
}

#[tokio::test]
async fn a_replay_and_a_writer_of_the_same_lanes_come_one_after_the_other() {
    let now = Clock::system().now();
    let (_database, pool) = ledger(now).await;
    let (mut replayer, mut writer) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    // As in a database that sorts like a dictionary: by bytes, B comes before a.
    let sorted =
        "ALTER TABLE delivery_ordering_keys ALTER ordering_key TYPE TEXT COLLATE \"en-x-icu\"";
    writer.batch_execute(sorted).await.unwrap();
    let mut ids = Vec::new();
    for ordering_key in ["rma:B", "rma:a"] {
        ids.push(append_dead(&mut writer, now, ordering_key).await);
    }
    writer.batch_execute("BEGIN").await.unwrap();
    append(&mut writer, now, Some("rma:B")).await;
    let writing = async {
        somebody_waits(&pool).await;
        append(&mut writer, now, Some("rma:a")).await;
        writer.batch_execute("COMMIT").await.unwrap();
    };
    let replaying = super::revive(&mut replayer, now, &ids, Superseded::Skipped);
    let (revived, ()) = tokio::join!(replaying, writing);
    assert_eq!(revived.unwrap().len(), 2);
}

#[tokio::test]
async fn a_replay_that_is_refused_holds_nobody_back() {
    let now = Clock::system().now();
    let (_database, pool) = ledger(now).await;
    let mut conn = pool.get().await.unwrap();
    let first = append_dead(&mut conn, now, "rma:1").await;
    let second = append(&mut conn, now, Some("rma:1")).await;
    let delivered = settlement(second, Verdict::Delivered, Signal::Grow, now);
    super::settle(&mut conn, &mut windows(), &[delivered]).await.unwrap();
    let third = append(&mut conn, now, Some("rma:1")).await;
    let revived = super::revive(&mut conn, now, &[first], Superseded::Skipped).await.unwrap();
    assert!(revived.is_empty());
    assert_eq!(pick(&mut conn, now).await, [third]);
}

#[tokio::test]
async fn a_look_reads_little_of_a_full_table_that_the_planner_believes_empty() {
    const LANES: usize = 500;
    let now = Clock::system().now();
    let (_database, pool) = ledger(now).await;
    let mut conn = pool.dedicated().await.unwrap();
    append(&mut conn, now, Some("quiet")).await;
    conn.batch_execute("ALTER TABLE deliveries SET (autovacuum_enabled = off)").await.unwrap();
    conn.batch_execute("VACUUM ANALYZE deliveries").await.unwrap();
    let ordering_keys = (0..LANES).map(|number| message(Some(&format!("ordering_key-{number}"))));
    super::append(&mut conn, now, &ordering_keys.collect::<Vec<_>>()).await.unwrap();
    let picking = read_by(&mut conn, async |conn| assert_eq!(pick(conn, now).await.len(), 8)).await;
    assert!((8..100).contains(&picking), "{picking} rows were read for 8 messages");
    let walking = read_by(&mut conn, async |conn| {
        super::unblock_heads(conn, &mut super::Walked::default()).await.unwrap();
    });
    let walking = walking.await;
    assert!(
        (LANES..LANES * 3).contains(&walking),
        "{walking} rows were read for {LANES} ordering_keys"
    );
}

/// How many rows of the ledger this reads.
async fn read_by(
    conn: &mut AsyncPgConnection,
    work: impl AsyncFnOnce(&mut AsyncPgConnection),
) -> usize {
    conn.batch_execute("BEGIN").await.unwrap();
    work(conn).await;
    let read = "SELECT idx_tup_fetch::text AS text FROM pg_stat_xact_user_tables \
                WHERE relname = 'deliveries'";
    let read = ask(conn, read).await.parse().unwrap();
    conn.batch_execute("COMMIT").await.unwrap();
    read
}
