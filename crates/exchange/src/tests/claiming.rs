//! Tests of the choice of waiting confirmations.

use std::collections::BTreeSet;
use std::time::Duration;

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use platform::database::sql;
use platform::{Clock, Service as _};
use serde_json::json;
use testkit::Database;

use super::app::{confirmed, gift_card_unit};
use crate::App;
use crate::store::confirmations::{Capacity, lease_waiting};

const MIB: usize = 1024 * 1024;

/// Inserts confirmations of a merchant, each with its own order and this many bytes long.
async fn insert(conn: &mut AsyncPgConnection, merchant: &str, many: i32, bytes: usize) {
    let mut document = confirmed("R", "1", &[gift_card_unit("L1", 1)]);
    document.merchant = merchant.parse().unwrap();
    let mut document = json!(document).to_string();
    let padding = bytes.saturating_sub(document.len());
    document.push_str(&" ".repeat(padding));
    sql(
        "INSERT INTO confirmations (merchant, original_order_id, rma_identifier, state, document, \
             received_at, leased_until) \
         SELECT $1, number, number, 'waiting', $3, now() - interval '1 s', now() - interval '1 s' \
         FROM (SELECT gen_random_uuid()::text AS number FROM generate_series(1, $2)) AS new",
        (merchant, many, document),
    )
    .execute(conn)
    .await
    .unwrap();
}

async fn claim_merchants(conn: &mut AsyncPgConnection, slots: i64, busy: &[&str]) -> Vec<String> {
    let busy = busy.iter().map(ToString::to_string).collect();
    let capacity = Capacity { slots, bytes: 8 * 1024 * 1024, busy };
    let leased =
        lease_waiting(conn, Clock::system().now(), Duration::from_secs(60), &capacity).await;
    let mut merchants: Vec<_> =
        leased.unwrap().iter().map(|leased| leased.confirmed.merchant.to_string()).collect();
    merchants.sort();
    merchants
}

#[tokio::test]
async fn a_claim_is_limited_in_bytes() {
    let database = Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    insert(&mut conn, "acme", 3, 5 * MIB).await;
    insert(&mut conn, "acme", 1, 9 * MIB).await;
    insert(&mut conn, "acme", 4, 0).await;
    let mut sizes = Vec::new();
    while let some @ 1.. = claim_merchants(&mut conn, 32, &[]).await.len() {
        sizes.push(some);
    }
    // A claim ends with the confirmation that reaches the limit.
    assert_eq!(sizes, [2, 2, 4]);
}

#[tokio::test]
async fn merchants_take_turns() {
    let database = Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    insert(&mut conn, "acme", 100, 0).await;
    assert_eq!(
        claim_merchants(&mut conn, 8, &[]).await,
        ["acme"; 8],
        "a single merchant gets every slot"
    );
    insert(&mut conn, "rival", 3, 0).await;
    insert(&mut conn, "third", 2, 0).await;
    let first = ["acme", "acme", "rival", "rival", "third", "third"];
    assert_eq!(claim_merchants(&mut conn, 6, &[]).await, first);
    assert_eq!(claim_merchants(&mut conn, 1, &["acme", "acme", "third"]).await, ["rival"]);
    // Leased confirmations still wait, so three merchants share the slots.
    assert_eq!(claim_merchants(&mut conn, 30, &["rival"]).await, ["acme"; 10]);
}

#[tokio::test]
async fn with_more_merchants_than_slots_every_merchant_has_a_turn() {
    let database = Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    for merchant in ["a", "b", "c", "d"] {
        insert(&mut conn, merchant, 200, 0).await;
    }
    let mut turns = BTreeSet::new();
    // Each merchant is leased with a probability of one in two.
    for _ in 0..60 {
        turns.extend(claim_merchants(&mut conn, 2, &[]).await);
    }
    assert_eq!(turns.len(), 4, "{turns:?}");
}
