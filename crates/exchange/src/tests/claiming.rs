//! Which of the waiting confirmations are taken, and how many.

use std::collections::BTreeSet;
use std::time::Duration;

use diesel::sql_types::{Integer, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use platform::{Clock, Service as _};
use serde_json::json;
use testkit::Database;

use super::stage::{carded, confirmed};
use crate::App;
use crate::store::confirmations::{Space, claim};

const MIB: usize = 1024 * 1024;

/// Confirmations of a merchant, each of an order of its own and so many bytes long.
async fn write(conn: &mut AsyncPgConnection, merchant: &str, many: i32, bytes: usize) {
    let mut document = confirmed("R", "1", &[carded("L1", 1)]);
    document.merchant = merchant.parse().unwrap();
    let mut document = json!(document).to_string();
    let padding = bytes.saturating_sub(document.len());
    document.push_str(&" ".repeat(padding));
    diesel::sql_query(
        "INSERT INTO confirmations (merchant, original_order_id, rma_identifier, state, document, \
             received_at, claimed_until) \
         SELECT $1, number, number, 'waiting', $3, now() - interval '1 s', now() - interval '1 s' \
         FROM (SELECT gen_random_uuid()::text AS number FROM generate_series(1, $2)) AS new",
    )
    .bind::<Text, _>(merchant)
    .bind::<Integer, _>(many)
    .bind::<Text, _>(document)
    .execute(conn)
    .await
    .unwrap();
}

async fn take(conn: &mut AsyncPgConnection, places: i64, busy: &[&str]) -> Vec<String> {
    let busy = busy.iter().map(ToString::to_string).collect();
    let space = Space { places, bytes: 8 * 1024 * 1024, busy };
    let claimed = claim(conn, Clock::system().now(), Duration::from_secs(60), &space).await;
    let mut merchants: Vec<_> =
        claimed.unwrap().iter().map(|claimed| claimed.confirmed.merchant.to_string()).collect();
    merchants.sort();
    merchants
}

#[tokio::test]
async fn what_is_claimed_is_a_full_load_at_the_most() {
    let database = Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    write(&mut conn, "acme", 3, 5 * MIB).await;
    write(&mut conn, "acme", 1, 9 * MIB).await;
    write(&mut conn, "acme", 4, 0).await;
    let mut taken = Vec::new();
    while let some @ 1.. = take(&mut conn, 32, &[]).await.len() {
        taken.push(some);
    }
    // A load ends with the one that makes it full.
    assert_eq!(taken, [2, 2, 4]);
}

#[tokio::test]
async fn merchants_take_turns() {
    let database = Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    write(&mut conn, "acme", 100, 0).await;
    assert_eq!(take(&mut conn, 8, &[]).await, ["acme"; 8], "alone it has every place");
    write(&mut conn, "rival", 3, 0).await;
    write(&mut conn, "third", 2, 0).await;
    let first = ["acme", "acme", "rival", "rival", "third", "third"];
    assert_eq!(take(&mut conn, 6, &[]).await, first);
    assert_eq!(take(&mut conn, 1, &["acme", "acme", "third"]).await, ["rival"]);
    // The others still have something under way, so they count; the rest is for the next look.
    assert_eq!(take(&mut conn, 30, &["rival"]).await, ["acme"; 10]);
}

#[tokio::test]
async fn with_more_merchants_than_places_everyone_has_a_turn() {
    let database = Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    for merchant in ["a", "b", "c", "d"] {
        write(&mut conn, merchant, 200, 0).await;
    }
    let mut turns = BTreeSet::new();
    // Each has its turn with a chance of one in two.
    for _ in 0..60 {
        turns.extend(take(&mut conn, 2, &[]).await);
    }
    assert_eq!(turns.len(), 4, "{turns:?}");
}
