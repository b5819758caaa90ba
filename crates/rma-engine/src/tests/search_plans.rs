//! Searches read few rows of large tables, in one merchant and in all.

use diesel_async::SimpleAsyncConnection as _;
use domain::returns::RmaStatus;

use super::*;
use crate::store::discrepancy_search::{self, DiscrepancySearch, DiscrepancyState};
use crate::store::search::{Search, search};

/// 20 merchants with 1000 returns and 1000 discrepancies each. Every merchant has the same orders; the last
/// return of each is refunded, and the last discrepancy of each is open and of another kind.
const FILL: &str = "INSERT INTO returns \
     SELECT 'm-' || m, 'R-' || m || '-' || n, CASE WHEN n = 1 THEN 'REFUNDED' ELSE 'CREATED' END, \
         n || '@shop.example', NULL, '{}', now() - n * interval '1 minute', now() \
     FROM generate_series(1, 20) AS m, generate_series(1, 1000) AS n; \
     INSERT INTO return_units \
     SELECT 'm-' || m, 'R-' || m || '-' || n, 'A-' || n, 'L', 1, true, false, '1Z' || n \
     FROM generate_series(1, 20) AS m, generate_series(1, 1000) AS n; \
     INSERT INTO discrepancies (merchant, at, kind, order_identifier, rma_identifier, detail, \
         resolved_at, resolved_by, resolution_note) \
     SELECT 'm-' || m, now(), CASE WHEN n = 1 THEN 'rare' ELSE 'usual' END, 'A-' || n, 'R-' || n, \
         '{\"kind\": \"received_over\", \"rma_identifier\": \"R\", \"quantity\": 1}', \
         CASE WHEN n > 1 THEN now() END, CASE WHEN n > 1 THEN 'x' END, CASE WHEN n > 1 THEN 'x' END \
     FROM generate_series(1, 20) AS m, generate_series(1, 1000) AS n; \
     ANALYZE returns; ANALYZE return_units; ANALYZE discrepancies";

/// The most rows that a page of ten may read: each return is found by one of its units.
const MAX_ROWS: i64 = 60;

/// Rows of the tables that the connection has read since the statistics were last sent, which happens only
/// between transactions.
async fn rows_read(conn: &mut AsyncPgConnection) -> i64 {
    let read = "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint AS n \
                FROM pg_stat_xact_user_tables \
                WHERE relname IN ('returns', 'return_units', 'discrepancies')";
    number(conn, read).await
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[tokio::test]
async fn a_search_reads_about_as_many_rows_as_it_shows() {
    let database = testkit::Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    conn.batch_execute(FILL).await.unwrap();
    let searches = || {
        [
            Search::default(),
            Search { rma_identifier: text("R-7-500"), ..Search::default() },
            Search { order_identifier: text("A-500"), ..Search::default() },
            Search { tracking_number: text("1Z500"), ..Search::default() },
            Search { email: text("500@shop.example"), ..Search::default() },
            Search { status: Some(RmaStatus::Refunded), ..Search::default() },
        ]
    };
    for merchant in [None, Some("m-7".parse().unwrap())] {
        for wanted in searches() {
            let wanted = Search { merchant: merchant.clone(), ..wanted };
            conn.batch_execute("BEGIN").await.unwrap();
            let before = rows_read(&mut conn).await;
            // The documents are not returns, so the rows are found and then not understood.
            assert!(search(&mut conn, &wanted, 10).await.is_err(), "{wanted:?} finds nothing");
            let read = rows_read(&mut conn).await - before;
            assert!(read <= MAX_ROWS, "{wanted:?} reads {read} rows");
            conn.batch_execute("ROLLBACK").await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_search_for_discrepancies_reads_about_as_many_rows_as_it_shows() {
    let database = testkit::Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    conn.batch_execute(FILL).await.unwrap();
    let (open, resolved) = (Some(DiscrepancyState::Open), Some(DiscrepancyState::Resolved));
    let searches = || {
        let all = DiscrepancySearch::default;
        [
            all(),
            DiscrepancySearch { kind: text("rare"), ..all() },
            DiscrepancySearch { state: open, ..all() },
            DiscrepancySearch { state: resolved, ..all() },
            DiscrepancySearch { kind: text("usual"), state: resolved, ..all() },
            DiscrepancySearch { kind: text("rare"), state: open, ..all() },
            DiscrepancySearch { order_identifier: text("A-500"), ..all() },
            DiscrepancySearch { rma_identifier: text("R-500"), ..all() },
        ]
    };
    for merchant in [None, Some("m-7".parse().unwrap())] {
        for wanted in searches() {
            let wanted = DiscrepancySearch { merchant: merchant.clone(), ..wanted };
            conn.batch_execute("BEGIN").await.unwrap();
            let before = rows_read(&mut conn).await;
            let found = discrepancy_search::search(&mut conn, &wanted, 10).await.unwrap();
            assert!(!found.is_empty(), "{wanted:?} finds nothing");
            let read = rows_read(&mut conn).await - before;
            assert!(read <= MAX_ROWS, "{wanted:?} reads {read} rows");
            conn.batch_execute("ROLLBACK").await.unwrap();
        }
    }
}
