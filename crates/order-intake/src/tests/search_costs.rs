//! Searches read few rows and hold few connections.

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};

use super::test_writer::{TestWriter, samples};
use super::*;
use crate::store::{self, Search};
use crate::stored_order::OrderKey;

/// Executions after which PostgreSQL keeps a plan.
const WARM_UPS: usize = 6;

/// Every search reads as many rows as a page has, in a table with many more. A connection that made its plans while
/// the tables were empty reads few more.
#[expect(clippy::too_many_lines, reason = "one table of searches")]
#[tokio::test]
async fn searches_read_few_rows() {
    let writer = TestWriter::start().await;
    // A search starts after the order B-9000.
    let rows = testkit::fill_rows().max(10_000);
    // All orders of acme are sorted after those of rival by identifier.
    let fill = format!(
        "INSERT INTO orders SELECT merchant, prefix || n, 'Shipped', 'guest@mail.example', \
             ARRAY['1', 'L-' || n], now() - n * interval '1 second', now(), sha256('x'), '{{}}', now() \
         FROM (VALUES ('acme', 'B-'), ('rival', 'A-')) AS merchants (merchant, prefix), generate_series(1, {rows}) AS n; \
         INSERT INTO orders SELECT 'beta', 'C-1', 'Shipped', 'guest@mail.example', ARRAY['1'], now(), \
             now(), sha256('x'), '{{}}', now(); \
         INSERT INTO order_lines SELECT line, merchant, identifier \
         FROM orders, unnest(line_identifiers) AS line"
    );
    let off = "ALTER TABLE orders SET (autovacuum_enabled = off); \
               ALTER TABLE order_lines SET (autovacuum_enabled = off)";
    writer.database.execute_raw(off).await;
    writer.database.execute_raw("VACUUM ANALYZE orders, order_lines").await;
    let pool = writer.database.pool();
    let mut stale = pool.get().await.unwrap();
    let mut conn = pool.get().await.unwrap();
    let (acme, text) = (|| "acme".parse().ok(), |text: &str| Some(text.to_owned()));
    let after = |identifier: &str| {
        Some(OrderKey { merchant: "acme".parse().unwrap(), identifier: identifier.to_owned() })
    };
    let none = Search::default;
    let email = || text("guest@mail.example");
    let searches = [
        ("all", none()),
        ("merchant", Search { merchant: acme(), ..none() }),
        ("newest", Search { merchant: acme(), newest_first: true, ..none() }),
        (
            "newest after",
            Search { after: after("B-9000"), merchant: acme(), newest_first: true, ..none() },
        ),
        ("prefix", Search { identifier_prefix: text("B-"), ..none() }),
        ("prefix after", Search { identifier_prefix: text("B-"), after: after("B-5"), ..none() }),
        (
            "prefix in merchant",
            Search { identifier_prefix: text("B-"), merchant: acme(), ..none() },
        ),
        ("e-mail", Search { customer_email: email(), ..none() }),
        ("e-mail after", Search { customer_email: email(), after: after("B-5"), ..none() }),
        ("e-mail in merchant", Search { customer_email: email(), merchant: acme(), ..none() }),
        (
            "one order of a merchant",
            Search { customer_email: email(), merchant: "beta".parse().ok(), ..none() },
        ),
        ("rare prefix", Search { identifier_prefix: text("B-999"), merchant: acme(), ..none() }),
        ("small merchant", Search { merchant: "beta".parse().ok(), newest_first: true, ..none() }),
        ("rare line", Search { line_identifier: text("L-7"), ..none() }),
        (
            "rare line in merchant",
            Search { line_identifier: text("L-7"), merchant: acme(), ..none() },
        ),
        ("frequent line", Search { line_identifier: text("1"), ..none() }),
        (
            "frequent line in merchant",
            Search { line_identifier: text("1"), merchant: acme(), ..none() },
        ),
        (
            "frequent line after",
            Search {
                line_identifier: text("1"),
                merchant: acme(),
                after: after("B-9000"),
                ..none()
            },
        ),
        ("no line", Search { line_identifier: text("none"), merchant: acme(), ..none() }),
        ("identifier", Search { identifier: text("B-7"), ..none() }),
        (
            "identifier and line",
            Search { identifier: text("B-7"), line_identifier: text("1"), ..none() },
        ),
    ];
    for (_, search) in searches.iter().flat_map(|search| [search; WARM_UPS]) {
        store::search(&mut stale, search, 10).await.unwrap();
    }
    writer.database.execute_raw(&fill).await;
    for (name, search) in &searches {
        let find = async |conn: &mut AsyncPgConnection| {
            store::search(conn, search, 10).await.unwrap().0.len()
        };
        let (found, reads) = testkit::reads(&mut stale, find).await;
        assert_eq!(found == 0, *name == "no line", "{name} finds {found} orders");
        assert!(reads.rows <= 60, "{name} with the plan of an empty table: {reads:?}");
    }
    writer.database.execute_raw("VACUUM ANALYZE orders, order_lines").await;
    for (name, search) in searches {
        let find = async |conn: &mut AsyncPgConnection| {
            store::search(conn, &search, 10).await.unwrap().0.len()
        };
        // The plan of a prepared statement changes after some executions.
        for _ in 0..7 {
            let (found, reads) = testkit::reads(&mut conn, &find).await;
            assert_eq!(found == 0, name == "no line", "{name} finds {found} orders");
            assert!(reads.rows <= 30 && reads.pages <= 100, "{name}: {reads:?}");
        }
    }
}

/// Searches that wait for the database hold few of its connections.
#[tokio::test(flavor = "multi_thread")]
async fn slow_searches_do_not_stop_publishing() {
    let app = TestApp::alone().await;
    let mut holder = app.service.pool.get().await.unwrap();
    // Only the list of erasures reads this table.
    holder.batch_execute("BEGIN; LOCK TABLE erasures").await.unwrap();
    let url = format!("{}/v1/erasures", app.service.url);
    let mut searches = tokio::task::JoinSet::new();
    // The lists of one merchant, and those of all merchants, take half of the readers each.
    let callers = [(Some("acme"), "read"), (None, "operator")];
    for (merchant, scope) in callers.into_iter().cycle().take(20) {
        let search = app.client.get(&url).bearer_auth(app.issuer.token(merchant, scope));
        searches.spawn(async move { search.send().await.unwrap().status().as_u16() });
    }
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND wait_event_type = 'Lock'";
    testkit::eventually("all readers wait", Duration::from_secs(120), async || {
        (app.service.database.count(waiting).await == 4).then_some(())
    })
    .await;
    assert_eq!(app.publish("acme", &sample_message(2)).await.0, StatusCode::OK);
    // The service consumes the event about a new merchant.
    app.add_merchant(merchant("late")).await;
    assert_eq!(app.publish("late", &sample_message(2)).await.0, StatusCode::OK);
    let ready = app.client.get(format!("{}/readyz", app.service.url)).send().await.unwrap();
    assert_eq!(ready.status(), StatusCode::OK);
    holder.batch_execute("COMMIT").await.unwrap();
    let statuses = searches.join_all().await;
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
}

/// PostgreSQL keeps the plan of the writer's statement that it made while the tables were empty, until it analyzes
/// the tables.
#[tokio::test]
async fn the_plan_of_an_empty_table_stays_good() {
    let writer = TestWriter::start().await;
    let orders = samples(2_000);
    // The batches of one writer share a connection.
    let publications = orders.chunks(100).map(|batch| writer.publication("acme", batch));
    let submitted = publications.map(|publication| writer.submit(publication));
    let results = writer.with_writer(futures_util::future::join_all(submitted)).await;
    assert!(results.iter().all(|result| result.as_ref().unwrap().is_ok()));
    let written =
        "SELECT n_tup_ins::text AS line FROM pg_stat_user_tables WHERE relname = 'orders'";
    testkit::eventually("the statistics are there", Duration::from_secs(300), async || {
        (writer.lines(written).await == ["2000"]).then_some(())
    })
    .await;
    let scans = "SELECT concat(relname, ' ', seq_tup_read) AS line FROM pg_stat_user_tables \
                     WHERE relname IN ('orders', 'order_lines') AND seq_tup_read > 20000 \
                 UNION ALL SELECT concat(indexrelname, ' ', idx_scan) FROM pg_stat_user_indexes \
                     WHERE indexrelname IN ('orders_by_creation', 'orders_by_identifier') AND idx_scan > 0";
    assert_eq!(writer.lines(scans).await, Vec::<String>::new());
}

/// Reads and erases one order.
async fn erase_one(conn: &mut AsyncPgConnection) {
    let merchant = "acme".parse().unwrap();
    let identifiers = ["B-7".to_owned()];
    let now = platform::Clock::system().now();
    store::load_stored(conn, &[("acme", "B-7")], &[], &[]).await.unwrap();
    store::erase_orders(conn, &merchant, &identifiers, now).await.unwrap();
    store::release_placeholders(conn, &merchant, &identifiers).await.unwrap();
}

#[tokio::test]
async fn erasures_whose_plans_were_made_while_the_table_was_empty_read_few_orders() {
    let writer = TestWriter::start().await;
    let off = "ALTER TABLE orders SET (autovacuum_enabled = off)";
    writer.database.execute_raw(off).await;
    writer.database.execute_raw("VACUUM ANALYZE").await;
    let pool = writer.database.pool();
    let mut conn = pool.get().await.unwrap();
    for _ in 0..WARM_UPS {
        testkit::reads(&mut conn, erase_one).await;
    }
    let fill = "INSERT INTO orders SELECT 'acme', 'B-' || n, 'Shipped', NULL, ARRAY['1'], \
                    now() - n * interval '1 second', now(), sha256('x'), '{}', now() \
                FROM generate_series(1, 2000) AS n";
    writer.database.execute_raw(fill).await;
    let ((), reads) = testkit::reads(&mut conn, erase_one).await;
    assert!((3..60).contains(&reads.rows), "{reads:?}");
}
