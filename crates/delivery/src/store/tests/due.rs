//! The cost of finding and claiming due deliveries, and turns between endpoints.

use super::*;
use crate::store::{due_endpoints, endpoints_after, retry_now, take_wake_ups};

async fn append_for(conn: &mut AsyncPgConnection, now: Timestamp, merchant: &str) -> Uuid {
    let message = NewMessage { merchant: merchant.parse().unwrap(), ..message(None) };
    super::super::append(conn, now, &[message]).await.unwrap()[0]
}

/// Inserts deliveries of `merchants` merchants, `each` of them for each, which are due in `seconds`.
async fn insert_waiting(conn: &mut AsyncPgConnection, merchants: usize, each: usize, seconds: i64) {
    conn.batch_execute(&format!(
        "INSERT INTO deliveries (id, merchant, kind, sequence, state, next_attempt_at) \
         SELECT gen_random_uuid(), 'merchant-' || merchant, 'rma', 1, 'ready', \
         now() + {seconds} * INTERVAL '1 second' \
         FROM generate_series(1, {merchants}) AS merchant, generate_series(1, {each})",
    ))
    .await
    .unwrap();
}

/// Returns the number of index entries of `deliveries` that `work` reads, also of deleted rows.
async fn entries_read(
    conn: &mut AsyncPgConnection,
    work: impl AsyncFnOnce(&mut AsyncPgConnection),
) -> usize {
    // The counters also have earlier transactions of the session, unless PostgreSQL added them up already.
    const READ: &str = "SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid))::text AS text \
                        FROM pg_index WHERE indrelid = 'deliveries'::regclass";
    conn.batch_execute("BEGIN").await.unwrap();
    let before: usize = query_text(conn, READ).await.parse().unwrap();
    work(conn).await;
    let after: usize = query_text(conn, READ).await.parse().unwrap();
    conn.batch_execute("COMMIT").await.unwrap();
    after - before
}

#[tokio::test]
async fn a_poll_reads_what_is_due_however_many_endpoints_wait() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.dedicated().await.unwrap();
    insert_waiting(&mut conn, 3000, 3, 3600).await;
    // One merchant has a backlog.
    insert_waiting(&mut conn, 1, 20_000, -3600).await;
    conn.batch_execute("ANALYZE deliveries").await.unwrap();
    let since = now - TimeDelta::seconds(10);
    let nothing = async |conn: &mut _| {
        assert!(due_endpoints(conn, (since, now), 5000, &[]).await.unwrap().is_empty());
    };
    assert_eq!(entries_read(&mut conn, nothing).await, 0);

    let id = append_for(&mut conn, now, "nova").await;
    let one = async |conn: &mut _| {
        let due = due_endpoints(conn, (since, now), 5000, &[]).await.unwrap();
        assert_eq!(due.iter().map(|due| due.merchant.as_str()).collect::<Vec<_>>(), ["nova"]);
        assert_eq!((due[0].first_at.timestamp_millis(), due[0].read), (now.timestamp_millis(), 1));
        let claims = claim_from(conn, now, &[claimable("nova", due[0].first_at, 8)]).await;
        assert_eq!(claims.claimed[0].0.id, id);
    };
    let read = entries_read(&mut conn, one).await;
    assert!(read < 10, "read {read} index entries for one delivery");
}

#[tokio::test]
async fn a_scan_skips_from_endpoint_to_endpoint() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.dedicated().await.unwrap();
    insert_waiting(&mut conn, 100, 3, 3600).await;
    insert_waiting(&mut conn, 1, 20_000, -3600).await;
    let scan = async |conn: &mut _| {
        let first = endpoints_after(conn, &EndpointKey::default(), 60).await.unwrap();
        let last = first.last().unwrap();
        assert_eq!((first.len(), first[0].merchant.as_str()), (60, "merchant-1"));
        assert!(first[0].first_at < now && last.first_at > now, "{first:?}");
        let after = (last.merchant.clone(), last.kind.clone());
        assert_eq!(endpoints_after(conn, &after, 60).await.unwrap().len(), 40);
    };
    let read = entries_read(&mut conn, scan).await;
    assert!((100..300).contains(&read), "read {read} index entries for 100 endpoints");
}

/// The dispatcher must read as little in the last round as in the first, although no deleted row can be
/// removed from the indexes.
#[tokio::test]
async fn a_long_transaction_does_not_slow_down_claims() {
    const ROUNDS: usize = 40;
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut reader, mut conn) = (pool.get().await.unwrap(), pool.dedicated().await.unwrap());
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    let mut read = Vec::new();
    for round in 0..ROUNDS {
        let now = now + TimeDelta::seconds(i64::try_from(round).unwrap());
        let keys = (0..50).map(|key| message(Some(&format!("key-{round}-{key}"))));
        let ids = super::super::append(&conn, now, &keys.collect::<Vec<_>>()).await.unwrap();
        let poll = async |conn: &mut _| {
            let since = now - TimeDelta::milliseconds(200);
            let due = due_endpoints(conn, (since, now), 5000, &[]).await.unwrap();
            let claims = claim_from(conn, now, &[claimable("acme", due[0].first_at, 50)]).await;
            assert_eq!(claims.claimed.len(), 50);
        };
        read.push(entries_read(&mut conn, poll).await);
        let batch: Vec<_> = ids.iter().map(|id| delivered(*id, 0, now)).collect();
        super::super::settle(&mut conn, now, &mut windows(), &batch).await.unwrap();
    }
    reader.batch_execute("COMMIT").await.unwrap();
    let (first, last) = (read[0], read[ROUNDS - 1]);
    assert!(last * 2 <= first * 3, "read {first} index entries at first and {last} at last");
}

#[tokio::test]
async fn endpoints_take_turns_in_a_batch() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let earlier = now - TimeDelta::hours(1);
    for _ in 0..5 {
        append_for(&mut conn, earlier, "acme").await;
    }
    for _ in 0..2 {
        append_for(&mut conn, now, "nova").await;
    }
    // Turns follow the order given, although the deliveries of `acme` are older.
    let endpoints = [claimable("nova", now, 4), claimable("acme", earlier, 4)];
    let claims = claim_from(&mut conn, now, &endpoints).await;
    let merchants: Vec<_> = claims.claimed.iter().map(|(it, _)| it.merchant.as_str()).collect();
    assert_eq!(merchants, ["nova", "acme", "nova", "acme", "acme", "acme"]);
    assert_eq!((claims.found.len(), claims.is_batch_full), (6, false));
}

#[tokio::test]
async fn a_batch_that_is_too_large_says_that_deliveries_are_left() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let large = NewMessage { body: vec![b'x'; 5 * 1024 * 1024].into(), ..message(None) };
    for _ in 0..3 {
        super::super::append(&conn, now, std::slice::from_ref(&large)).await.unwrap();
    }
    let claims = claim_from(&mut conn, now, &[claimable("acme", now, 8)]).await;
    assert_eq!((claims.claimed.len(), claims.is_batch_full), (2, true));
    let claims = claim_from(&mut conn, now, &[claimable("acme", now, 8)]).await;
    assert_eq!((claims.claimed.len(), claims.is_batch_full), (1, false));
}

#[tokio::test]
async fn a_delivery_behind_one_that_is_being_settled_is_left() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut settler, mut conn) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let first = append(&mut conn, now, Some("rma:1")).await;
    let second = append(&mut conn, now, Some("rma:1")).await;
    let claims = claim_from(&mut conn, now, &[claimable("acme", now, 1)]).await;
    assert_eq!(claims.claimed[0].0.id, first);
    settler.batch_execute("BEGIN").await.unwrap();
    settle(&mut settler, delivered(first, 0, now)).await;
    let claims = claim_from(&mut conn, now, &[claimable("acme", now, 8)]).await;
    assert_eq!((claims.claimed.len(), claims.blocked), (0, 0));
    assert!(claims.to_check_again.contains(&endpoint("acme")));
    settler.batch_execute("COMMIT").await.unwrap();
    assert_eq!(claim(&mut conn, now).await, [second]);
}

#[tokio::test]
async fn an_unblocked_delivery_is_found_as_due_since_the_settlement() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let earlier = now - TimeDelta::hours(1);
    let first = append(&mut conn, earlier, Some("rma:1")).await;
    let second = append(&mut conn, earlier, Some("rma:1")).await;
    assert_eq!(claim(&mut conn, now).await, [first]);
    let before = now - TimeDelta::milliseconds(1);
    assert!(due_endpoints(&mut conn, (before, now), 10, &[]).await.unwrap().is_empty());
    settle(&mut conn, delivered(first, 0, now)).await;
    assert_eq!(due_endpoints(&mut conn, (before, now), 10, &[]).await.unwrap().len(), 1);
    assert_eq!(claim(&mut conn, now).await, [second]);
}

#[tokio::test]
async fn a_retry_at_once_wakes_the_dispatcher_of_any_replica() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    append(&mut conn, now - TimeDelta::hours(1), None).await;
    let id = append(&mut conn, now, None).await;
    assert!(retry_now(&mut conn, now, id).await.unwrap());
    assert_eq!(take_wake_ups(&mut conn).await.unwrap(), [endpoint("acme")]);
    assert!(take_wake_ups(&mut conn).await.unwrap().is_empty());
    assert_eq!(claim(&mut conn, now).await[0], id);
}

#[tokio::test]
async fn a_retry_at_once_is_not_lost_to_an_earlier_one_of_its_endpoint() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut operator, mut conn) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let (first, second) = (append(&mut conn, now, None).await, append(&mut conn, now, None).await);
    assert!(retry_now(&mut conn, now, first).await.unwrap());
    operator.batch_execute("BEGIN").await.unwrap();
    assert!(retry_now(&mut operator, now, second).await.unwrap());
    // The dispatcher does not see the second retry yet.
    assert!(take_wake_ups(&mut conn).await.unwrap().is_empty());
    operator.batch_execute("COMMIT").await.unwrap();
    assert_eq!(take_wake_ups(&mut conn).await.unwrap(), [endpoint("acme")]);
}

#[tokio::test]
async fn a_retry_that_is_stored_late_is_due_when_it_is_stored() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let id = append(&mut conn, now, None).await;
    let retry = Decision::RetryAt(now + TimeDelta::seconds(10));
    let (failed, late) = (settlement(id, retry, Signal::Hold, now), now + TimeDelta::minutes(1));
    super::super::settle(&mut conn, late, &mut windows(), &[failed]).await.unwrap();
    let range = (late - TimeDelta::milliseconds(1), late);
    assert_eq!(due_endpoints(&mut conn, range, 10, &[]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn only_a_full_window_grows_and_a_slow_success_does_not_widen_it_further() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let size = "SELECT window_size::text AS text FROM delivery_endpoints";
    let mut succeed = async |successes: usize, latency_ms: u64, is_window_full: bool| {
        for _ in 0..successes {
            let mut success = delivered(super::super::new_id(now), 0, now);
            success.attempt.latency = Duration::from_millis(latency_ms);
            success.message.is_window_full = is_window_full;
            settle(&mut conn, success).await;
        }
        query_text(&mut conn, size).await.parse::<u32>().unwrap()
    };
    assert_eq!(succeed(3, 5, false).await, 8);
    assert_eq!(succeed(3, 5, true).await, 11);
    assert_eq!(succeed(40, 10_000, true).await, 32);
    assert_eq!(succeed(100, 5, true).await, 64);
    assert_eq!(succeed(1, 10_000, true).await, 32);
}
