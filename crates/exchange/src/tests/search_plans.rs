//! Searches read few rows of large tables, in one merchant and in all.

use api::exchange::State;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use platform::Service as _;
use platform::http::ListOrder;

use crate::App;
use crate::store::search::{Search, find};

/// Exchanges of merchant acme, which are the older half, and as many of rival. Every tenth has no order; of the
/// orders, all but the first hundred are placed.
fn fill(rows: i64) -> String {
    let both = 2 * rows;
    format!(
        "INSERT INTO confirmations (merchant, original_order_id, rma_identifier, state, document, \
             received_at, leased_until, decided_at) \
         SELECT CASE WHEN n <= {rows} THEN 'acme' ELSE 'rival' END, 'A-' || n % {rows}, 'R-' || n, \
             CASE WHEN n % 10 = 0 THEN 'not_exchangeable' ELSE 'ordered' END, '{{}}', now(), now(), now() \
         FROM generate_series(1, {both}) AS n; \
         INSERT INTO exchange_orders (merchant, original_order_id, confirmation, id, transaction_id, \
             delivery, state, items, message, stock_check, price_check, ordered_at, \
             exchange_order_identifier) \
         SELECT merchant, original_order_id, position, gen_random_uuid(), \
             lpad(position::text, 32, '0')::uuid, \
             gen_random_uuid(), CASE WHEN position % {rows} < 100 THEN 'undeliverable' ELSE 'placed' END, \
             '[]', '{{}}', 'checked', 'checked', now(), \
             CASE WHEN position % {rows} >= 100 THEN 'EX-' || position END \
         FROM confirmations WHERE state = 'ordered'"
    )
}

#[tokio::test]
async fn a_search_reads_about_as_many_rows_as_it_shows() {
    // With fewer rows, PostgreSQL sorts them instead of reading an index in order.
    let rows = testkit::fill_rows().max(10_000);
    let database = testkit::Database::create(App::migrations()).await;
    database.execute_raw(&fill(rows)).await;
    database.execute_raw("VACUUM ANALYZE").await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    let text = |text: &str| Some(text.to_owned());
    let all = Search::default;
    let searches = || {
        [
            ("all", all()),
            ("a later page", Search { after: Some(rows / 2), ..all() }),
            ("order", Search { original_order_id: text("A-505"), ..all() }),
            ("return", Search { rma_identifier: text("R-505"), ..all() }),
            ("name", Search { exchange_order_identifier: text("EX-505"), ..all() }),
            ("transaction", Search { transaction_id: text(&format!("{:0>32}", 505)), ..all() }),
            ("placed", Search { state: Some(State::Placed), ..all() }),
            (
                "placed, later",
                Search { state: Some(State::Placed), after: Some(rows / 2), ..all() },
            ),
            ("undeliverable", Search { state: Some(State::Undeliverable), ..all() }),
            ("without order", Search { state: Some(State::NotExchangeable), ..all() }),
        ]
    };
    let orders = [ListOrder::Newest, ListOrder::Oldest];
    let merchants: [Option<MerchantId>; 3] = [None, "acme".parse().ok(), "rival".parse().ok()];
    for (merchant, order) in merchants.iter().flat_map(|it| orders.map(|order| (it, order))) {
        for (name, search) in searches() {
            let is_of_acme = search.has_identifier();
            let is_rival = merchant.as_ref().is_some_and(|it| it.as_str() == "rival");
            if is_of_acme && is_rival {
                continue;
            }
            // The middle of the merchant's exchanges.
            let after = search.after.map(|after| if is_rival { after + rows } else { after });
            let search = Search { merchant: merchant.clone(), order, after, ..search };
            let find =
                async |conn: &mut AsyncPgConnection| find(conn, &search, 10).await.unwrap().0.len();
            // The plan of a prepared statement changes after some executions.
            for _ in 0..7 {
                let (found, reads) = testkit::reads(&mut conn, &find).await;
                assert!(found > 0, "{name} of {merchant:?}, {order:?}, finds nothing");
                let is_cheap = reads.rows <= 60 && reads.pages <= 150;
                assert!(is_cheap, "{name} of {merchant:?}, {order:?}: {reads:?}");
            }
        }
    }
}
