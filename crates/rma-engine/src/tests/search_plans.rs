//! Searches read few rows of large tables, in one merchant and in all.

use api::delivery::State;
use api::returns::ReturnCounts;
use diesel_async::SimpleAsyncConnection as _;
use domain::access::MerchantId;
use domain::merchant::ReturnMethod;
use domain::returns::{RmaStatus, WorkList};
use platform::http::ListOrder;

use super::*;
use crate::store;
use crate::store::discrepancy_search::{self, DiscrepancySearch, DiscrepancyState};
use crate::store::search::{MAX_SCANNED, Search, search};

/// Returns and discrepancies of merchant m-7, and as many of 19 others, which have the same orders and SKUs. The newest
/// return of each is refunded. The newest discrepancy of each is open and of another kind.
fn fill(rows: i64) -> String {
    let others = rows / 19;
    format!(
        "CREATE TEMPORARY TABLE numbers AS \
         SELECT 'm-' || m AS m, n FROM generate_series(1, 20) AS m, \
         generate_series(1, CASE WHEN m = 7 THEN {rows} ELSE {others} END) AS n; \
         INSERT INTO returns (merchant, rma_identifier, status, customer_email, document, \
             created_at, updated_at, overdue, facts) \
         SELECT m, 'R-' || m || '-' || n, CASE WHEN n = 1 THEN 'REFUNDED' ELSE 'CREATED' END, \
             n || '@shop.example', '{{}}', now() - n * interval '1 minute', now(), n % 500 = 7, \
             '{{\"return_method\": \"mail-back\"}}' \
         FROM numbers; \
         INSERT INTO return_work_lists (merchant, rma_identifier, work_list, created_at) \
         SELECT m, 'R-' || m || '-' || n, CASE WHEN n = 1 THEN 'done' ELSE 'not_sent' END, \
             now() - n * interval '1 minute' FROM numbers; \
         INSERT INTO return_skus (merchant, rma_identifier, sku, created_at) \
         SELECT m, 'R-' || m || '-' || n, 'S-' || n % 1000, now() - n * interval '1 minute' \
         FROM numbers; \
         INSERT INTO timeline (merchant, rma_identifier, at, actor, event, detail, recorded_at) \
         SELECT m, 'R-' || m || '-' || n, now(), 'x', 'rma.created', '{{}}', \
             now() - n * interval '1 minute' FROM numbers, generate_series(1, 2); \
         INSERT INTO return_units (merchant, rma_identifier, order_identifier, line_identifier, \
             unit, held, exchanged, tracking_number, order_sequence) \
         SELECT m, 'R-' || m || '-' || n, 'A-' || n, 'L', 1, true, false, '1Z' || n, n FROM numbers; \
         INSERT INTO discrepancies (merchant, at, kind, order_identifier, rma_identifier, detail, \
             resolved_at, resolved_by, resolution_note) \
         SELECT m, now(), CASE WHEN n = 1 THEN 'rare' ELSE 'usual' END, 'A-' || n, 'R-' || n, \
             '{{\"kind\": \"received_over\", \"rma_identifier\": \"R\", \"quantity\": 1}}', \
             CASE WHEN n > 1 THEN now() END, CASE WHEN n > 1 THEN 'x' END, \
             CASE WHEN n > 1 THEN 'x' END FROM numbers"
    )
}

/// Rows of a merchant. With fewer rows, PostgreSQL sorts them instead of reading an index in order.
fn rows() -> i64 {
    testkit::fill_rows().max(10_000)
}

async fn filled() -> testkit::Database {
    let database = testkit::Database::create(App::migrations()).await;
    database.execute_raw(&fill(rows())).await;
    database.execute_raw("VACUUM ANALYZE").await;
    database
}

/// The most rows that a page of ten may read: each return is found by one of its units, in each merchant.
const MAX_ROWS: i64 = 100;
/// The most pages of tables and indexes, in all merchants and in one. A change is looked up in the timeline of its
/// return, and then the return.
const MAX_PAGES: i64 = 300;
const MAX_PAGES_OF_ONE: i64 = 250;
/// Executions after which PostgreSQL keeps a plan.
const WARM_UPS: usize = 7;

/// A page with old returns, which only m-7 has.
fn old_page() -> Option<(platform::Timestamp, String)> {
    old_time().map(|time| (time, String::new()))
}

fn old_time() -> Option<platform::Timestamp> {
    Some(Clock::system().now() - minutes(rows() / 2))
}

fn old_change() -> Option<(platform::Timestamp, String)> {
    Some((Clock::system().now() - minutes(rows() / 4), "0".to_owned()))
}

fn minutes(minutes: i64) -> chrono::TimeDelta {
    chrono::TimeDelta::minutes(minutes)
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

/// Searches in one merchant or in all.
fn searches(merchant: Option<&MerchantId>) -> Vec<Search> {
    let searches = [
        Search::default(),
        Search { rma_identifier: text("R-m-7-500"), ..Search::default() },
        Search { rma_identifier_prefix: text("R-m-7-500"), ..Search::default() },
        Search { order_identifier: text("A-500"), ..Search::default() },
        Search { tracking_number: text("1Z500"), ..Search::default() },
        Search { email: text("500@shop.example"), ..Search::default() },
        Search { status: Some(RmaStatus::Refunded), ..Search::default() },
        Search { status: Some(RmaStatus::Created), ..Search::default() },
        Search { sku: text("S-500"), ..Search::default() },
        Search { sku: text("S-500"), order: ListOrder::Oldest, ..Search::default() },
        Search { work_list: Some(WorkList::Done), ..Search::default() },
        Search { work_list: Some(WorkList::NotSent), ..Search::default() },
        Search { work_list: Some(WorkList::NotSent), after: old_page(), ..Search::default() },
        Search { work_list: Some(WorkList::Done), order: ListOrder::Oldest, ..Search::default() },
        Search { return_method: Some(ReturnMethod::MailBack), ..Search::default() },
        Search { updated_from: old_time(), ..Search::default() },
        Search { updated_from: old_time(), after: old_change(), ..Search::default() },
        Search { is_overdue: true, ..Search::default() },
        Search { is_overdue: true, order: ListOrder::Oldest, ..Search::default() },
        Search { is_overdue: true, after: old_page(), ..Search::default() },
        Search { from: Some(Clock::system().now() - minutes(5)), ..Search::default() },
        Search { after: old_page(), ..Search::default() },
        Search { after: old_page(), status: Some(RmaStatus::Created), ..Search::default() },
        Search { order: ListOrder::Oldest, ..Search::default() },
        Search { order: ListOrder::Oldest, status: Some(RmaStatus::Created), ..Search::default() },
        Search { order: ListOrder::Oldest, status: Some(RmaStatus::Refunded), ..Search::default() },
        Search { order: ListOrder::Oldest, after: old_page(), ..Search::default() },
        Search {
            order: ListOrder::Oldest,
            from: Some(Clock::system().now() - minutes(5)),
            ..Search::default()
        },
        Search { order: ListOrder::Oldest, order_identifier: text("A-500"), ..Search::default() },
    ];
    let of_merchant = |search| Search { merchant: merchant.cloned(), ..search };
    searches.into_iter().map(of_merchant).collect()
}

/// Searches in one merchant or in all with filters that are checked for each return and match none.
fn checked_searches(merchant: Option<&MerchantId>) -> Vec<Search> {
    let none = || Search { return_reason: text("NONE"), ..Search::default() };
    let searches = [
        none(),
        Search { order: ListOrder::Oldest, ..none() },
        Search { status: Some(RmaStatus::Created), ..none() },
        Search { work_list: Some(WorkList::NotSent), ..none() },
        Search { min_amount_cents: Some(1), ..Search::default() },
        Search { message_state: Some(State::Dead), ..Search::default() },
        Search { updated_from: old_time(), ..none() },
        Search {
            status: Some(RmaStatus::Refunded),
            work_list: Some(WorkList::NotSent),
            ..Search::default()
        },
    ];
    let of_merchant = |search| Search { merchant: merchant.cloned(), ..search };
    searches.into_iter().map(of_merchant).collect()
}

/// Searches for discrepancies in one merchant or in all, newest and oldest first.
fn discrepancy_searches(merchant: Option<&MerchantId>) -> Vec<DiscrepancySearch> {
    let all = DiscrepancySearch::default;
    let open = Some(DiscrepancyState::Open);
    let resolved = Some(DiscrepancyState::Resolved);
    let of_order = |order| {
        let searches = [
            all(),
            DiscrepancySearch { kind: text("rare"), ..all() },
            DiscrepancySearch { state: open, ..all() },
            DiscrepancySearch { state: resolved, ..all() },
            DiscrepancySearch { kind: text("usual"), state: resolved, ..all() },
            DiscrepancySearch { kind: text("rare"), state: open, ..all() },
            DiscrepancySearch { order_identifier: text("A-500"), ..all() },
            DiscrepancySearch { rma_identifier: text("R-500"), ..all() },
        ];
        searches.map(|search| DiscrepancySearch { merchant: merchant.cloned(), order, ..search })
    };
    [ListOrder::Newest, ListOrder::Oldest].into_iter().flat_map(of_order).collect()
}

fn merchants() -> [Option<MerchantId>; 2] {
    [None, Some("m-7".parse().unwrap())]
}

fn max_pages(merchant: Option<&MerchantId>) -> i64 {
    if merchant.is_some() { MAX_PAGES_OF_ONE } else { MAX_PAGES }
}

#[tokio::test]
async fn a_search_reads_about_as_many_rows_as_it_shows() {
    let database = filled().await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    for wanted in merchants().iter().flat_map(|merchant| searches(merchant.as_ref())) {
        // The plan of a prepared statement changes after some executions.
        for _ in 0..WARM_UPS {
            assert_eq!(cost_of_search(&mut conn, &wanted).await, None);
        }
    }
}

/// The search and what it read, if that is too much.
async fn cost_of_search(conn: &mut AsyncPgConnection, wanted: &Search) -> Option<String> {
    let find = async |conn: &mut AsyncPgConnection| search(conn, wanted, 10).await;
    let (found, reads) = testkit::reads(conn, find).await;
    // The documents are not returns, so the rows are found and then not understood.
    assert!(found.is_err(), "{wanted:?} finds nothing");
    let is_cheap = reads.rows <= MAX_ROWS && reads.pages <= max_pages(wanted.merchant.as_ref());
    (!is_cheap).then(|| format!("{wanted:?}: {reads:?}"))
}

/// A filter without an index reads a part of one: for each entry the return, and for some filters its work list.
#[tokio::test]
async fn a_search_with_checked_filters_reads_a_limited_number_of_rows() {
    let database = filled().await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    for wanted in merchants().iter().flat_map(|merchant| checked_searches(merchant.as_ref())) {
        for _ in 0..WARM_UPS {
            let find = async |conn: &mut AsyncPgConnection| search(conn, &wanted, 10).await;
            let (found, reads) = testkit::reads(&mut conn, find).await;
            let found = found.unwrap();
            assert!(found.returns.is_empty() && found.scanned_to.is_some(), "{wanted:?}");
            // The end of the part is found in the index once more.
            assert!(reads.rows <= 4 * MAX_SCANNED, "{wanted:?}: {reads:?}");
        }
    }
}

#[tokio::test]
async fn a_search_for_discrepancies_reads_about_as_many_rows_as_it_shows() {
    let database = filled().await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    for wanted in merchants().iter().flat_map(|merchant| discrepancy_searches(merchant.as_ref())) {
        for _ in 0..WARM_UPS {
            assert_eq!(cost_of_discrepancy_search(&mut conn, &wanted).await, None);
        }
    }
}

/// The search and what it read, if that is too much.
async fn cost_of_discrepancy_search(
    conn: &mut AsyncPgConnection,
    wanted: &DiscrepancySearch,
) -> Option<String> {
    let find = async |conn: &mut AsyncPgConnection| {
        discrepancy_search::search(conn, wanted, 10).await.unwrap().len()
    };
    let (found, reads) = testkit::reads(conn, find).await;
    assert!(found > 0, "{wanted:?} finds nothing");
    let is_cheap = reads.rows <= MAX_ROWS && reads.pages <= max_pages(wanted.merchant.as_ref());
    (!is_cheap).then(|| format!("{wanted:?}: {reads:?}"))
}

/// Each of seven counts ends at its limit.
#[tokio::test]
async fn counts_of_work_lists_read_a_limited_number_of_rows() {
    let database = filled().await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    let limit = ReturnCounts::MAX;
    let overdue = (rows() / 500).min(limit);
    for merchant in merchants() {
        for _ in 0..WARM_UPS {
            let count = async |conn: &mut AsyncPgConnection| {
                store::counts::count(conn, merchant.as_ref()).await.unwrap()
            };
            let (counts, reads) = testkit::reads(&mut conn, count).await;
            assert_eq!((counts.not_sent, counts.to_review), (limit, 0));
            assert!(counts.done > 0 && counts.overdue >= overdue, "{counts:?}");
            assert!(reads.rows <= 4 * limit, "{merchant:?}: {reads:?}");
        }
    }
}

/// A nightly analysis may find tables that are still empty. The searches take their indexes all the same, with
/// the plans from then and with new ones.
#[tokio::test]
async fn searches_read_few_rows_whatever_the_statistics_say() {
    let database = testkit::Database::create(App::migrations()).await;
    let tables = ["returns", "return_units", "return_work_lists", "return_skus", "discrepancies"];
    let off = tables.map(|table| format!("ALTER TABLE {table} SET (autovacuum_enabled = off)"));
    database.execute_raw(&off.join("; ")).await;
    database.execute_raw("VACUUM ANALYZE").await;
    let pool = database.pool();
    let mut old_plans = pool.get().await.unwrap();
    for merchant in merchants() {
        for _ in 0..WARM_UPS {
            for wanted in searches(merchant.as_ref()) {
                assert!(search(&mut old_plans, &wanted, 10).await.unwrap().returns.is_empty());
            }
            for wanted in discrepancy_searches(merchant.as_ref()) {
                let found = discrepancy_search::search(&mut old_plans, &wanted, 10).await;
                assert!(found.unwrap().is_empty());
            }
        }
    }
    database.execute_raw(&fill(rows())).await;
    let mut new_plans = pool.get().await.unwrap();
    let mut expensive = Vec::new();
    for (plans, conn) in [("old", &mut old_plans), ("new", &mut new_plans)] {
        for merchant in merchants() {
            for wanted in searches(merchant.as_ref()) {
                let cost = cost_of_search(conn, &wanted).await;
                expensive.extend(cost.map(|cost| format!("{plans} plan: {cost}")));
            }
            for wanted in discrepancy_searches(merchant.as_ref()) {
                let cost = cost_of_discrepancy_search(conn, &wanted).await;
                expensive.extend(cost.map(|cost| format!("{plans} plan: {cost}")));
            }
        }
    }
    assert!(expensive.is_empty(), "{expensive:#?}");
}

/// PostgreSQL keeps the plans that it made while the tables were empty, until it analyzes the tables.
#[tokio::test]
async fn plans_of_empty_tables_stay_good() {
    let database = testkit::Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    let names = [("m-7", "R-m-7-1"), ("m-7", "R-m-7-2")];
    let parcels = [("m-7", "1Z3")];
    let alone = platform::batching::Processing::Alone;
    for _ in 0..10 {
        store::returns::lock_requested(&conn, &names, &parcels, alone).await.unwrap();
        let started = store::returns::started_by(&conn, &counted()).await.unwrap();
        assert!(started.iter().all(Vec::is_empty));
    }
    conn.batch_execute("SET statement_timeout = 0").await.unwrap();
    conn.batch_execute(&fill(rows())).await.unwrap();
    let (locked, reads) = testkit::reads(&mut conn, async |conn| {
        store::returns::lock_requested(conn, &names, &parcels, alone).await.unwrap()
    })
    .await;
    assert_eq!(locked.len(), 3);
    assert!(reads.pages <= 60, "{reads:?}");
    let (started, reads) = testkit::reads(&mut conn, async |conn| {
        store::returns::started_by(conn, &counted()).await.unwrap()
    })
    .await;
    assert_eq!(started.iter().map(Vec::len).collect::<Vec<_>>(), [1]);
    assert!(reads.rows <= MAX_ROWS && reads.pages <= MAX_PAGES_OF_ONE, "{reads:?}");
}

/// A shopper of m-7 with one return.
fn counted() -> [store::returns::CountedShopper<'static>; 1] {
    let since = Clock::system().now() - chrono::TimeDelta::days(3_650);
    [store::returns::CountedShopper {
        merchant: "m-7",
        email: "500@shop.example".to_owned(),
        since,
    }]
}
