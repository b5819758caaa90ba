//! Store functions under concurrent transactions, and with clocks that differ.

mod due;
mod endpoint_states;
mod erase;
mod locked_rows;
mod reads;
mod search;
mod stale_plans;

use std::num::NonZeroU32;
use std::time::Duration;

use chrono::TimeDelta;
use diesel::{QueryableByName, sql_types::Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use domain::message_kind::{MessageKind, MessageVersion};
use platform::{Clock, Timestamp, database::Pool};
use testkit::{Database, eventually};
use uuid::Uuid;

use super::{
    BlockedCursor, ClaimParams, ClaimableEndpoint, ClaimedBatch, EndpointKey, NewMessage,
    OrderingKeys, Partitions, Superseded, Windows,
};
use crate::outcome::{Decision, Signal};
use crate::queue_message::RELEASED_CLAIM_DELAY;
use crate::settlement::{Settlement, tests::settlement};
use crate::window::Limits;

const TIMEOUT: Duration = Duration::from_secs(300);
const LEASE: Duration = Duration::from_secs(300);

/// Creates a database with the partitions of today.
async fn database(now: Timestamp) -> (Database, Pool) {
    let database = Database::create(vec![messaging::MIGRATIONS, crate::MIGRATIONS]).await;
    let pool = database.pool();
    let partitions = Partitions { retention_days: 30 };
    partitions.maintain(&mut pool.get().await.unwrap(), now).await.unwrap();
    (database, pool)
}

fn message(ordering_key: Option<&str>) -> NewMessage {
    NewMessage {
        merchant: "acme".parse().unwrap(),
        kind: MessageKind::Rma,
        version: MessageVersion(3),
        ordering_key: ordering_key.map(str::to_owned),
        event: "rma.created".to_owned(),
        body: "{}".into(),
    }
}

async fn append(conn: &mut AsyncPgConnection, now: Timestamp, ordering_key: Option<&str>) -> Uuid {
    super::append(conn, now, &[message(ordering_key)]).await.unwrap()[0]
}

/// Appends a message and marks it dead.
async fn append_dead(conn: &mut AsyncPgConnection, now: Timestamp, ordering_key: &str) -> Uuid {
    let id = append(conn, now, Some(ordering_key)).await;
    settle(conn, settlement(id, Decision::Dead, Signal::Hold, now)).await;
    id
}

fn endpoint(merchant: &str) -> EndpointKey {
    (merchant.to_owned(), "rma".to_owned())
}

fn claimable(merchant: &str, none_due_before: Timestamp, max_messages: u32) -> ClaimableEndpoint {
    ClaimableEndpoint { key: endpoint(merchant), none_due_before, max_messages }
}

async fn claim_from(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    endpoints: &[ClaimableEndpoint],
) -> ClaimedBatch {
    super::claim_due(conn, ClaimParams { now, lease: LEASE }, endpoints).await.unwrap()
}

/// Claims the deliveries that are due and returns their ids.
async fn claim(conn: &mut AsyncPgConnection, now: Timestamp) -> Vec<Uuid> {
    let claims = claim_from(conn, now, &[claimable("acme", Timestamp::UNIX_EPOCH, 8)]).await;
    claims.claimed.iter().map(|(claimed, _)| claimed.id).collect()
}

async fn settle(conn: &mut AsyncPgConnection, settlement: Settlement) {
    let now = settlement.attempt.started_at;
    super::settle(conn, now, &mut windows(), &[settlement]).await.unwrap();
}

fn windows() -> Windows {
    let size = |size| NonZeroU32::new(size).unwrap();
    Windows::new(Limits { initial: size(8), max: size(64), probe_delay: LEASE })
}

fn delivered(id: Uuid, replay_number: i32, at: Timestamp) -> Settlement {
    let mut settlement = settlement(id, Decision::Delivered, Signal::Grow, at);
    settlement.message.replay_number = replay_number;
    settlement
}

#[derive(QueryableByName)]
struct TextRow {
    #[diesel(sql_type = Text)]
    text: String,
}

async fn query_text(conn: &mut AsyncPgConnection, query: &str) -> String {
    diesel::sql_query(query).get_result::<TextRow>(conn).await.unwrap().text
}

async fn wait_for_blocked_session(pool: &Pool) {
    eventually("a session waits for a lock", TIMEOUT, async || {
        let waiting = "SELECT count(*)::text AS text FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        (query_text(&mut pool.get().await.unwrap(), waiting).await != "0").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_delivery_that_is_settled_during_a_claim_is_not_queued() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut settler, mut dispatcher) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let id = append(&mut settler, now, None).await;
    settler.batch_execute("BEGIN").await.unwrap();
    let retry = Decision::RetryAt(now + TimeDelta::hours(1));
    settle(&mut settler, settlement(id, retry, Signal::Hold, now)).await;
    assert!(claim(&mut dispatcher, now).await.is_empty());
    settler.batch_execute("COMMIT").await.unwrap();
    assert!(claim(&mut dispatcher, now).await.is_empty());
    let state = "SELECT state || ' ' || attempts AS text FROM deliveries";
    assert_eq!(query_text(&mut dispatcher, state).await, "ready 1");
}

#[tokio::test]
async fn a_success_by_a_clock_that_is_ahead_delays_no_delivery() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let ahead = now + TimeDelta::seconds(30);
    settle(&mut conn, delivered(super::new_id(now), 0, ahead)).await;
    let given = [(endpoint("acme"), now)];
    let due = super::due_endpoints(&mut conn, (now, now), 10, &given).await.unwrap();
    assert!(due[0].not_before > Some(now) && !due[0].is_failing(), "{due:?}");
}

#[tokio::test]
async fn a_released_delivery_is_due_when_copies_count_as_duplicates() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let id = append(&mut conn, now, None).await;
    assert_eq!(claim(&mut conn, now).await, [id]);
    super::release_claim(&mut conn, now, &[id]).await.unwrap();
    assert!(
        claim(&mut conn, now + RELEASED_CLAIM_DELAY - TimeDelta::milliseconds(1)).await.is_empty()
    );
    assert_eq!(claim(&mut conn, now + RELEASED_CLAIM_DELAY).await, [id]);
}

#[tokio::test]
async fn a_queued_delivery_is_ready_again_when_its_lease_expires() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let id = append(&mut conn, now, None).await;
    assert_eq!(claim(&mut conn, now).await, [id]);
    let expiry = now + LEASE;
    let early = expiry - TimeDelta::milliseconds(1);
    assert_eq!(super::expire_leases(&mut conn, early, &[id]).await.unwrap(), 0);
    assert_eq!(super::leased(&mut conn).await.unwrap()[0].id, id);
    assert_eq!(super::expire_leases(&mut conn, expiry, &[id]).await.unwrap(), 1);
    assert!(super::leased(&mut conn).await.unwrap().is_empty());
    // The dispatcher finds it as a delivery that becomes due now.
    let found = super::due_endpoints(&mut conn, (early, expiry), 10, &[]).await.unwrap();
    assert_eq!(found[0].key(), endpoint("acme"));
    assert_eq!(claim(&mut conn, expiry).await, [id]);
}

#[tokio::test]
async fn a_successor_is_not_queued_while_its_predecessor_is_replayed() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut replayer, mut dispatcher) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let first = append_dead(&mut replayer, now, "rma:1").await;
    let second = append(&mut replayer, now, Some("rma:1")).await;
    replayer.batch_execute("BEGIN").await.unwrap();
    let ready =
        super::make_settled_ready(&mut replayer, now, &[first], Superseded::Skip).await.unwrap();
    assert_eq!(ready, [first]);
    assert!(claim(&mut dispatcher, now).await.is_empty());
    replayer.batch_execute("COMMIT").await.unwrap();
    assert_eq!(claim(&mut dispatcher, now).await, [first]);
    settle(&mut replayer, delivered(first, 1, now)).await;
    assert_eq!(claim(&mut dispatcher, now).await, [second]);
}

#[tokio::test]
async fn a_message_appended_during_a_replay_waits_for_it() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut replayer, mut writer) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let first = append_dead(&mut replayer, now, "rma:1").await;
    replayer.batch_execute("BEGIN").await.unwrap();
    super::make_settled_ready(&mut replayer, now, &[first], Superseded::Skip).await.unwrap();
    let committing = async {
        wait_for_blocked_session(&pool).await;
        replayer.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(append(&mut writer, now, Some("rma:1")), committing);
    assert_eq!(claim(&mut writer, now).await, [first]);
}

#[tokio::test]
async fn a_replay_and_a_writer_of_the_same_ordering_keys_do_not_deadlock() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut replayer, mut writer) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    // A linguistic collation would sort a before B; bytes sort B before a.
    let mut ids = Vec::new();
    for ordering_key in ["rma:B", "rma:a"] {
        ids.push(append_dead(&mut writer, now, ordering_key).await);
    }
    writer.batch_execute("BEGIN").await.unwrap();
    append(&mut writer, now, Some("rma:B")).await;
    let writing = async {
        wait_for_blocked_session(&pool).await;
        append(&mut writer, now, Some("rma:a")).await;
        writer.batch_execute("COMMIT").await.unwrap();
    };
    let replaying = super::make_settled_ready(&mut replayer, now, &ids, Superseded::Skip);
    let (ready, ()) = tokio::join!(replaying, writing);
    assert_eq!(ready.unwrap().len(), 2);
}

#[tokio::test]
async fn a_refused_replay_blocks_no_delivery() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let first = append_dead(&mut conn, now, "rma:1").await;
    let second = append(&mut conn, now, Some("rma:1")).await;
    settle(&mut conn, delivered(second, 0, now)).await;
    let third = append(&mut conn, now, Some("rma:1")).await;
    let ready =
        super::make_settled_ready(&mut conn, now, &[first], Superseded::Skip).await.unwrap();
    assert!(ready.is_empty());
    assert_eq!(claim(&mut conn, now).await, [third]);
}

#[tokio::test]
async fn a_newer_message_supersedes_only_messages_with_the_complete_state() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    for kind in MessageKind::ALL {
        let key = kind.name();
        let new = || NewMessage { kind, ..message(Some(key)) };
        let ids = super::append(&conn, now, &[new(), new()]).await.unwrap();
        let mut dead = settlement(ids[0], Decision::Dead, Signal::Hold, now);
        dead.message.content.kind = kind;
        settle(&mut conn, dead).await;
        settle(&mut conn, delivered(ids[1], 0, now)).await;
        let ready =
            super::make_settled_ready(&mut conn, now, &ids[..1], Superseded::Skip).await.unwrap();
        assert_eq!(ready.is_empty(), kind.has_complete_state(), "{kind}");
    }
}

#[tokio::test]
async fn the_ordering_key_of_a_whole_finds_its_units_and_parts() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    for key in [
        "inbound_asn:A/U-1",
        "inbound_asn:A/U-2",
        "inbound_asn:A2/U-1",
        "asn:A",
        "asn:A_1",
        "asn:A_12",
        "asn:A_X",
        "asn:A2",
        "order:A",
        "order:A_1",
    ] {
        append(&mut conn, now, Some(key)).await;
    }
    let mut find = async |ordering_key: &str| {
        let filter = api::delivery::Filter {
            ordering_key: Some(ordering_key.to_owned()),
            ..api::delivery::Filter::default()
        };
        let scan =
            super::list(&mut conn, &filter, super::IdOrder::NewestFirst, None, 20).await.unwrap();
        let mut keys: Vec<_> = scan.rows.into_iter().filter_map(|row| row.ordering_key).collect();
        keys.sort_unstable();
        keys.join(" ")
    };
    assert_eq!(find("inbound_asn:A").await, "inbound_asn:A/U-1 inbound_asn:A/U-2");
    assert_eq!(find("inbound_asn:A/U-1").await, "inbound_asn:A/U-1");
    assert_eq!(find("asn:A").await, "asn:A asn:A_1 asn:A_12");
    assert_eq!(find("order:A").await, "order:A");
}

#[tokio::test]
async fn a_delivery_that_two_settlements_at_once_left_blocked_is_unblocked() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut one, mut other) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let first = append_dead(&mut one, now, "rma:1").await;
    let second = append(&mut one, now, Some("rma:1")).await;
    let third = append(&mut one, now, Some("rma:1")).await;
    assert_eq!(claim(&mut one, now).await, [second]);
    super::make_settled_ready(&mut one, now, &[first], Superseded::Send).await.unwrap();
    assert_eq!(claim(&mut one, now).await, [first]);
    // Each settlement still sees the delivery that the other one settles, and unblocks nothing.
    one.batch_execute("BEGIN").await.unwrap();
    settle(&mut one, delivered(first, 1, now)).await;
    let committing = async {
        wait_for_blocked_session(&pool).await;
        one.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(settle(&mut other, delivered(second, 0, now)), committing);
    assert!(claim(&mut one, now).await.is_empty());
    let mut cursor = BlockedCursor::default();
    assert_eq!(super::unblock_first_deliveries(&mut one, now, &mut cursor).await.unwrap(), 1);
    assert_eq!(claim(&mut one, now).await, [third]);
}

#[tokio::test]
async fn claims_read_few_rows_of_a_full_table_that_the_planner_takes_for_empty() {
    const KEYS: usize = 500;
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.dedicated().await.unwrap();
    append(&mut conn, now, Some("first")).await;
    conn.batch_execute("ALTER TABLE deliveries SET (autovacuum_enabled = off)").await.unwrap();
    conn.batch_execute("VACUUM ANALYZE deliveries").await.unwrap();
    let messages = (0..KEYS).map(|number| message(Some(&format!("key-{number}"))));
    super::append(&conn, now, &messages.collect::<Vec<_>>()).await.unwrap();
    let claim = async |conn: &mut _| assert_eq!(claim(conn, now).await.len(), 8);
    let rows = rows_read(&mut conn, claim).await;
    assert!((8..100).contains(&rows), "read {rows} rows for 8 deliveries");
    let block = "UPDATE deliveries SET state = 'blocked' WHERE state = 'ready'";
    conn.batch_execute(block).await.unwrap();
    let unblock = async |conn: &mut _| {
        super::unblock_first_deliveries(conn, now, &mut BlockedCursor::default()).await.unwrap();
    };
    let rows = rows_read(&mut conn, unblock).await;
    assert!((KEYS - 8..KEYS * 4).contains(&rows), "read {rows} rows for {KEYS} deliveries");
}

/// Returns the number of rows of `deliveries` that `work` reads.
async fn rows_read(
    conn: &mut AsyncPgConnection,
    work: impl AsyncFnOnce(&mut AsyncPgConnection),
) -> usize {
    conn.batch_execute("BEGIN").await.unwrap();
    work(conn).await;
    let read = "SELECT idx_tup_fetch::text AS text FROM pg_stat_xact_user_tables \
                WHERE relname = 'deliveries'";
    let read = query_text(conn, read).await.parse().unwrap();
    conn.batch_execute("COMMIT").await.unwrap();
    read
}

#[tokio::test]
async fn a_message_is_queued_at_once_only_if_nothing_can_be_before_it() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let lease = now + TimeDelta::minutes(5);
    for (ordering_key, keys_are, is_settled, expected) in [
        (None, OrderingKeys::Shared, false, 1),
        (Some("rma:1"), OrderingKeys::Shared, false, 1),
        (Some("rma:1"), OrderingKeys::Shared, false, 0),
        (Some("rma:1"), OrderingKeys::Locked, false, 0),
        (Some("rma:1"), OrderingKeys::Shared, true, 0),
        (Some("rma:1"), OrderingKeys::Locked, true, 1),
    ] {
        if is_settled {
            conn.batch_execute("DELETE FROM deliveries").await.unwrap();
        }
        let new = super::new_deliveries(now, &[message(ordering_key)]);
        let queued = super::append_new(&conn, now, &new, vec![Some(lease)], keys_are);
        let queued = queued.await.unwrap().len();
        assert_eq!(queued, expected, "{ordering_key:?} {keys_are:?} {is_settled}");
    }
}
