//! Replays that the recovery of an endpoint starts.

use api::delivery::Filter;

use super::*;
use crate::store::{RecoveryReplay, find_replay, start_recovery};

fn replay(kind: &str, matched: i64) -> RecoveryReplay {
    let filter = Filter {
        merchant: Some("acme".to_owned()),
        kind: Some(kind.to_owned()),
        ..Filter::default()
    };
    RecoveryReplay { filter, per_second: 10, matched }
}

#[tokio::test]
async fn an_unfinished_replay_of_a_recovered_endpoint_begins_again() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let first = start_recovery(&mut conn, now, &replay("rma", 5)).await.unwrap();
    let paused =
        "UPDATE delivery_replays SET state = 'paused', replayed = 3, last_delivery_id = id";
    conn.batch_execute(paused).await.unwrap();
    assert_eq!(start_recovery(&mut conn, now, &replay("rma", 4)).await.unwrap(), first);
    let stored = find_replay(&mut conn, first).await.unwrap().unwrap();
    assert_eq!((stored.state.as_str(), stored.matched), ("paused", 7));
    assert_eq!((stored.requested_by.as_str(), stored.last_delivery_id), ("recovery", Uuid::nil()));
    let other = start_recovery(&mut conn, now, &replay("exchange-order", 1)).await.unwrap();
    assert_ne!(other, first);
    let stopped = "UPDATE delivery_replays SET state = 'stopped', finished_at = now()";
    conn.batch_execute(stopped).await.unwrap();
    assert_ne!(start_recovery(&mut conn, now, &replay("rma", 4)).await.unwrap(), first);
}
