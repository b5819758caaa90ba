//! Lists and reports read few rows of large tables, of one merchant and of all.

use api::delivery::{Filter, State};

use super::*;
use crate::store::history::scan::MAX_SCANNED;
use crate::store::{
    IdOrder, Period, ReportFilter, endpoint_latencies, hourly_latencies, list, match_counts,
    newest_replays, report,
};

const PAGE: i64 = 10;
/// The most rows that a page may read: for each delivery the entry of an index, the message, the unsettled
/// delivery and some attempts.
const MAX_PAGE_ROWS: i64 = PAGE * 40;
/// The same for a filter that few deliveries match.
const MAX_SCAN_ROWS: i64 = MAX_SCANNED * 6;

/// Messages of acme, which are the older half, and as many of rival. One in a thousand was delivered at
/// the second attempt, one is dead and one got status 202; a hundred are pending. Ordering keys occur in both.
fn fill_messages(rows: i64, now: Timestamp) -> String {
    let start = now.timestamp_millis() - 2 * rows;
    format!(
        "CREATE TEMPORARY TABLE numbers AS \
         SELECT n, CASE WHEN n <= {rows} THEN 'acme' ELSE 'rival' END AS merchant, \
             (lpad(to_hex({start} + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid AS id \
         FROM generate_series(1, 2 * {rows}) AS n; \
         INSERT INTO delivery_messages (id, merchant, kind, version, ordering_key, sequence, event, body, created_at) \
         SELECT id, merchant, 'rma', 3, 'rma:' || n % {rows}, n, \
             CASE WHEN n = 5 THEN 'rma.rare' ELSE 'rma.created' END, '\\x7b7d', now() FROM numbers; \
         INSERT INTO delivery_attempts (delivery, merchant, replay_number, number, started_at, latency_ms, \
             outcome, status, detail, response_body, settled) \
         SELECT id, merchant, 0, 1, now(), 3, \
             CASE WHEN n % 1000 IN (1, 2) THEN 'rejected' ELSE 'delivered' END, \
             CASE n % 1000 WHEN 1 THEN 500 WHEN 2 THEN 422 WHEN 3 THEN 202 ELSE 200 END, '', '', \
             CASE n % 1000 WHEN 1 THEN NULL WHEN 2 THEN 'dead' ELSE 'delivered' END \
         FROM numbers WHERE n % 10 <> 4; \
         INSERT INTO delivery_attempts (delivery, merchant, replay_number, number, started_at, latency_ms, \
             outcome, status, detail, response_body, settled) \
         SELECT id, merchant, 0, 2, now(), 3, 'delivered', 200, '', '', 'delivered' \
         FROM numbers WHERE n % 1000 = 1; \
         INSERT INTO deliveries (id, merchant, kind, ordering_key, sequence, state, next_attempt_at) \
         SELECT id, merchant, 'rma', 'rma:' || n % {rows}, n, 'ready', now() FROM numbers WHERE n % 10 = 4"
    )
}

#[tokio::test]
async fn a_page_of_deliveries_reads_a_limited_number_of_rows() {
    // With fewer rows, PostgreSQL sorts them instead of reading an index in order.
    let (rows, now) = (testkit::fill_rows().max(10_000), Clock::system().now());
    let (database, pool) = database(now).await;
    database.execute_raw(&fill_messages(rows, now)).await;
    database.execute_raw("VACUUM ANALYZE").await;
    let mut conn = pool.get().await.unwrap();
    let text = |text: &str| Some(text.to_owned());
    let all = Filter::default;
    let filters = || {
        [
            ("all", MAX_PAGE_ROWS, all()),
            ("delivered", MAX_PAGE_ROWS, Filter { state: Some(State::Delivered), ..all() }),
            ("pending", MAX_SCAN_ROWS, Filter { state: Some(State::Pending), ..all() }),
            ("dead", MAX_PAGE_ROWS, Filter { state: Some(State::Dead), ..all() }),
            ("status 422", MAX_PAGE_ROWS, Filter { status: Some(422), ..all() }),
            ("rejected", MAX_PAGE_ROWS, Filter { outcome: text("rejected"), ..all() }),
            ("status 200", MAX_PAGE_ROWS, Filter { status: Some(200), ..all() }),
            ("ordering key", MAX_PAGE_ROWS, Filter { ordering_key: text("rma:505"), ..all() }),
            ("text", MAX_PAGE_ROWS, Filter { text: text("505"), ..all() }),
            ("kind", MAX_PAGE_ROWS, Filter { kind: text("rma"), ..all() }),
            ("event", MAX_PAGE_ROWS, Filter { event: text("rma.created"), ..all() }),
            ("status 202", MAX_SCAN_ROWS, Filter { status: Some(202), ..all() }),
            ("rare event", MAX_SCAN_ROWS, Filter { event: text("rma.rare"), ..all() }),
            ("no status", MAX_SCAN_ROWS, Filter { status: Some(299), ..all() }),
            ("no failure", MAX_SCAN_ROWS, Filter { status: Some(599), ..all() }),
        ]
    };
    // The merchants whose messages are the last ones of the order.
    let cases = [
        (None, IdOrder::NewestFirst),
        (text("acme"), IdOrder::NewestFirst),
        (None, IdOrder::OldestFirst),
        (text("rival"), IdOrder::OldestFirst),
    ];
    for (merchant, order) in cases {
        for (name, most, filter) in filters() {
            let filter = Filter { merchant: merchant.clone(), ..filter };
            let find = async |conn: &mut AsyncPgConnection| {
                list(conn, &filter, order, None, PAGE).await.unwrap()
            };
            let (page, reads) = testkit::reads(&mut conn, &find).await;
            let is_scan = most == MAX_SCAN_ROWS;
            assert!(is_scan || !page.rows.is_empty(), "{name} finds nothing");
            let is_cheap = reads.rows <= most && reads.pages <= 4 * most;
            assert!(is_cheap, "{name} of {merchant:?}, {order:?}: {reads:?}");
        }
    }
    let dead = Filter { state: Some(State::Dead), ..all() };
    let count =
        async |conn: &mut AsyncPgConnection| match_counts(conn, &dead, 100_000).await.unwrap();
    let (counts, reads) = testkit::reads(&mut conn, &count).await;
    assert_eq!((counts.total, counts.is_truncated), (2 * rows / 1000, false));
    assert!(reads.rows <= counts.total * 10, "{reads:?} for {} dead deliveries", counts.total);
}

/// Counts of 30 days, for one merchant in all hours and for many others.
fn fill_counts(rows: i64) -> String {
    format!(
        "CREATE TEMPORARY TABLE hours AS SELECT date_trunc('hour', now()) - h * interval '1 hour' AS hour, \
             'm-' || m AS merchant FROM generate_series(0, 719) AS h, \
             generate_series(1, greatest(2 * {rows} / 720, 2)) AS m; \
         INSERT INTO delivery_counts SELECT hour, merchant, 'rma', 'delivered', 200, 1 FROM hours; \
         INSERT INTO delivery_latencies SELECT merchant, 'rma', hour, 3, 1, 1 FROM hours; \
         INSERT INTO delivery_totals SELECT hour, 'rma', 3, slot, 1, 1 \
         FROM (SELECT DISTINCT hour FROM hours) AS hours, generate_series(0, 7) AS slot; \
         INSERT INTO delivery_replays SELECT gen_random_uuid(), 'x', \
             jsonb_build_object('merchant', merchant), false, 1, 'finished', 0, gen_random_uuid(), 0, 0, 0, \
             hour, hour, hour FROM hours"
    )
}

#[tokio::test]
async fn reports_of_a_day_read_the_counts_of_a_day() {
    let now = Clock::system().now();
    let (database, pool) = database(now).await;
    database.execute_raw(&fill_counts(testkit::fill_rows())).await;
    database.execute_raw("VACUUM ANALYZE").await;
    let mut conn = pool.get().await.unwrap();
    let from = now - TimeDelta::hours(23);
    let filter = ReportFilter { merchant: Some("m-2".to_owned()), kind: None, from, to: now };
    for name in ["by hour", "by day", "hourly", "hourly of all", "endpoints", "replays"] {
        let find = async |conn: &mut AsyncPgConnection| match name {
            "by hour" => report(conn, &filter, Period::Hour).await.unwrap().len(),
            "by day" => report(conn, &filter, Period::Day).await.unwrap().len(),
            "hourly" => hourly_latencies(conn, from, Some("m-2"), &["rma"]).await.unwrap().len(),
            "hourly of all" => hourly_latencies(conn, from, None, &["rma"]).await.unwrap().len(),
            "endpoints" => {
                let span = (from, now);
                endpoint_latencies(conn, span, Some("m-2"), &["rma"]).await.unwrap().0.len()
            }
            _ => newest_replays(conn, Some("m-2"), None, None, 10).await.unwrap().len(),
        };
        let (found, reads) = testkit::reads(&mut conn, &find).await;
        assert!(found > 0, "{name} finds nothing");
        assert!(reads.rows <= 24 * 8 + 24, "{name}: {reads:?}");
    }
}
