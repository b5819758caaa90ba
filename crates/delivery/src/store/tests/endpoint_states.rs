//! States of endpoints: only those of a page are read.

use super::*;
use crate::store::{endpoint_results, failing_endpoints, worst_endpoints};

#[tokio::test]
async fn a_page_reads_only_its_own_endpoints() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    conn.batch_execute(
        "INSERT INTO delivery_endpoints (merchant, kind, window_size, slow_start_threshold, \
         window_acks, failed_probes, not_before, failing_since) \
         SELECT 'merchant-' || lpad(number::text, 5, '0'), 'rma', 1, 1, 0, 0, now(), \
         now() - number * INTERVAL '1 second' FROM generate_series(1, 5000) AS number; \
         ANALYZE delivery_endpoints",
    )
    .await
    .unwrap();
    conn.batch_execute("BEGIN").await.unwrap();
    let before = endpoints_read(&mut conn).await;
    let given = (&["merchant-00007", "merchant-04000"][..], &["rma", "rma"][..]);
    let among = endpoint_results(&mut conn, given).await.unwrap();
    assert_eq!(among.len(), 2);
    let after = ("merchant-00100".to_owned(), "rma".to_owned());
    let page = failing_endpoints(&mut conn, None, Some(&after), 3).await.unwrap();
    let read = endpoints_read(&mut conn).await - before;
    conn.batch_execute("COMMIT").await.unwrap();
    let names: Vec<_> = page.iter().map(|(merchant, _)| merchant.as_str()).collect();
    assert_eq!(names, ["merchant-00101", "merchant-00102", "merchant-00103"]);
    assert!(read < 50, "read {read} endpoints");
    let worst = worst_endpoints(&mut conn, None, now, 2).await.unwrap();
    let names: Vec<_> = worst.iter().map(|(merchant, _)| merchant.as_str()).collect();
    assert_eq!(names, ["merchant-05000", "merchant-04999"], "the longest failing come first");
}

/// Returns the number of endpoints that the connection has read.
async fn endpoints_read(conn: &mut AsyncPgConnection) -> usize {
    let read = "SELECT (seq_tup_read + COALESCE(idx_tup_fetch, 0))::text AS text \
                FROM pg_stat_xact_user_tables WHERE relname = 'delivery_endpoints'";
    query_text(conn, read).await.parse().unwrap()
}
