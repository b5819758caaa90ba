//! Which of the waiting confirmations are taken, and how many.

use std::num::NonZeroU32;
use std::time::Duration;

use diesel::sql_types::{Integer, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use platform::{Clock, Service as _};
use serde_json::json;
use testkit::Database;

use super::stage::{carded, confirmed};
use crate::App;
use crate::store::confirmations::{Claimed, claim};

const MIB: usize = 1024 * 1024;

/// Confirmations of a merchant, each of an order of its own and so many bytes long.
async fn write(conn: &mut AsyncPgConnection, merchant: &str, many: i32, bytes: usize) {
    let mut document = json!(confirmed("R", "1", &[carded("L1", 1)])).to_string();
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

async fn take(conn: &mut AsyncPgConnection, most: u32) -> Vec<Claimed> {
    let most = NonZeroU32::new(most).unwrap();
    claim(conn, Clock::system().now(), Duration::from_secs(60), most).await.unwrap()
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
    while let some @ 1.. = take(&mut conn, 32).await.len() {
        taken.push(some);
    }
    // A load ends with the one that makes it full.
    assert_eq!(taken, [2, 2, 4]);
}
