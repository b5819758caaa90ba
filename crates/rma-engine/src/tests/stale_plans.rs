//! Statements whose plans were made while their tables were empty read few rows of the full tables.

use std::collections::BTreeSet;

use api::returns::DiscrepancyResolution;
use diesel_async::AsyncPgConnection;
use domain::json::Digest;
use domain::merchant::Settings;
use domain::returns::{DeadlineKind, UnitId};
use platform::batching::Processing;
use platform::idempotency::{self, IdempotencyKey};

use super::*;
use crate::store::deadlines::{self, StoredDeadline};
use crate::store::discrepancies::resolve_refunds;
use crate::store::orders::{self, ResourceKey, RowLock};
use crate::store::{erased_orders, erasures, guarantees, locked_returns, lookups, returns, units};

/// Copies of the order and of its return.
const ROWS: i64 = 10_000;
/// Rows that a statement about one order or return may read: some entries of indexes, and rows.
const MAX_ROWS: i64 = 100;
/// Pages that it may read. The index of the units has more.
const MAX_PAGES: i64 = 60;
/// Executions after which PostgreSQL keeps a plan.
const WARM_UPS: usize = 6;

const STATEMENTS: [&str; 26] = [
    "lock stored orders",
    "find orders",
    "lock orders",
    "lock orders of a batch",
    "order exists",
    "known identifier",
    "held units",
    "returned units",
    "release exchange",
    "returns of orders",
    "requested returns",
    "kept returns",
    "addresses of shoppers",
    "erased orders",
    "erased return",
    "failed look-ups",
    "resolve discrepancies",
    "idempotency keys",
    "erase responses",
    "sums of guarantees",
    "due deadlines",
    "deadlines with other days",
    "move a deadline",
    "postpone a deadline",
    "delete a deadline",
    "add changes of guarantees",
];

/// The number of [`STATEMENTS`], from the last on, that the task for deadlines runs over its own connection.
const OF_LEADER: usize = 6;

/// Runs one of [`STATEMENTS`] about order A and its return.
#[expect(clippy::too_many_lines, reason = "one arm for each statement")]
async fn run(name: &str, conn: &mut AsyncPgConnection, rma: &str) {
    let merchant = "acme".parse().unwrap();
    let (order, named): (ResourceKey<'_>, ResourceKey<'_>) = (("acme", "A"), ("acme", rma));
    let find = async |conn: &AsyncPgConnection, lock| {
        orders::find(conn, &BTreeSet::from([order]), lock).await.unwrap();
    };
    match name {
        "lock stored orders" => {
            orders::lock_stored(conn, &[order], usize::MAX).await.unwrap();
        }
        "find orders" => find(conn, RowLock::None).await,
        "lock orders" => find(conn, RowLock::Update).await,
        "lock orders of a batch" => find(conn, RowLock::UpdateOrSkip).await,
        "order exists" => {
            orders::exists(conn, &merchant, "A").await.unwrap();
        }
        "known identifier" => {
            let names = ["A".to_owned(), "#A".to_owned()];
            lookups::known_identifier(conn, &merchant, &names).await.unwrap();
        }
        "held units" => drop(units::held(conn, &[order]).await.unwrap()),
        "returned units" => drop(units::returned(conn, &BTreeSet::from([order])).await.unwrap()),
        "release exchange" => {
            let unit = UnitId {
                order_identifier: "A".to_owned(),
                order_line_item_identifier: "A-1".to_owned(),
                unit: 1,
            };
            units::release_exchange(conn, &merchant, rma, &[unit]).await.unwrap();
        }
        "returns of orders" => {
            let locked = locked_returns::lock_affected(conn, &[order], &[named]).await.unwrap();
            drop(locked_returns::load(conn, &locked).await.unwrap());
        }
        "requested returns" => {
            let parcels = [("acme", "1Z")];
            let batch = Processing::Batch;
            drop(returns::lock_requested(conn, &[named], &parcels, batch).await.unwrap());
        }
        "kept returns" => drop(returns::kept(conn, &BTreeSet::from([named])).await.unwrap()),
        "addresses of shoppers" => {
            drop(returns::customer_emails(conn, &BTreeSet::from([named])).await.unwrap());
        }
        "erased orders" => drop(erased_orders::find(conn, &[order]).await.unwrap()),
        "erased return" => {
            erasures::erased_at(conn, &merchant, rma).await.unwrap();
        }
        "failed look-ups" => {
            let orders = ["A".to_owned()];
            let now = Clock::system().now();
            lookups::delete_of_orders(conn, &merchant, &orders, now).await.unwrap();
        }
        "resolve discrepancies" => {
            let at = Clock::system().now();
            let by = "jo".to_owned();
            let note = "done".to_owned();
            let resolution = DiscrepancyResolution { at, by, note, rma_identifier: None };
            resolve_refunds(conn, &merchant, "A", &["F-1"], &resolution).await.unwrap();
        }
        "idempotency keys" => {
            let key = "1";
            let request = Digest::of_value(&json!(1));
            let key = IdempotencyKey {
                merchant: Some(&merchant),
                operation: "returns",
                key,
                name: "key",
                request,
            };
            drop(idempotency::find_all(conn, &[key]).await.unwrap());
        }
        "erase responses" => {
            let names = [rma.to_owned()];
            let erase = domain::erasure::erase;
            idempotency::erase_responses(conn, &merchant, &names, erase).await.unwrap();
        }
        "due deadlines" => {
            deadlines::lock_due(conn, Clock::system().now(), 20).await.unwrap();
            deadlines::oldest_due(conn).await.unwrap();
        }
        "deadlines with other days" => {
            let mut settings = Settings::new("Acme");
            settings.returns.send_within_days = 31;
            let other_days = DeadlineKind::Send.period(&settings).unwrap();
            settings.returns.send_within_days = 30;
            settings.time_zone = "Asia/Tokyo".to_owned();
            let other_zone = DeadlineKind::Send.period(&settings).unwrap();
            let settings = [("acme", other_zone), ("rival", other_days)]
                .map(|(merchant, period)| (merchant.parse().unwrap(), period));
            deadlines::with_other_period(conn, DeadlineKind::Send, &settings, 20).await.unwrap();
        }
        "move a deadline" => {
            let deadline = deadline(rma);
            let settings = Settings::new("Acme");
            let moved = deadline.kind.starting(deadline.started_at, &settings).unwrap();
            deadlines::reschedule(conn, &[(&deadline, moved)]).await.unwrap();
        }
        "postpone a deadline" => {
            let now = Clock::system().now();
            deadlines::postpone(conn, &[&deadline(rma)], now).await.unwrap();
            deadlines::postpone_oldest(conn, now, now).await.unwrap();
        }
        "delete a deadline" => deadlines::delete(conn, &[&deadline(rma)]).await.unwrap(),
        "sums of guarantees" => {
            let month = "2026-11-01".parse().unwrap();
            drop(guarantees::sums(conn, &merchant, (month, month)).await.unwrap());
        }
        "add changes of guarantees" => {
            guarantees::fold(conn, 3).await.unwrap();
        }
        other => panic!("{other} is not a statement"),
    }
}

fn deadline(rma: &str) -> StoredDeadline {
    StoredDeadline {
        merchant: "acme".parse().unwrap(),
        rma_identifier: rma.to_owned(),
        kind: DeadlineKind::Send,
        started_at: Clock::system().now(),
    }
}

/// Copies the only order, its return and its unit, and adds keys and discrepancies.
fn fill() -> String {
    format!(
        "INSERT INTO orders SELECT merchant, 'X-' || n, updated_at, sequence, document, shipped_units, \
             stored_at FROM orders, generate_series(1, {ROWS}) AS n; \
         INSERT INTO returns (merchant, rma_identifier, status, document, created_at, updated_at, erased_at) \
         SELECT merchant, 'X-' || n, status, document, created_at, updated_at, now() \
         FROM returns, generate_series(1, {ROWS}) AS n; \
         INSERT INTO return_units (merchant, rma_identifier, order_identifier, line_identifier, unit, held, \
             exchanged, tracking_number, order_sequence) \
         SELECT merchant, 'X-' || n, 'X-' || n, line_identifier, unit, held, true, 'X' || n, order_sequence \
         FROM return_units, generate_series(1, {ROWS}) AS n; \
         INSERT INTO return_deadlines (merchant, rma_identifier, kind, started_at, days, due_at) \
         SELECT merchant, 'X-' || n, kind, started_at, 30 + n % 2, due_at + n * interval '1 second' \
         FROM return_deadlines, generate_series(1, {ROWS}) AS n; \
         INSERT INTO guarantee_totals \
         SELECT 'm-' || n % 100, '2000-01-01'::date + n * interval '1 month', 'USD', 'open', 1, 1 \
         FROM generate_series(1, {ROWS}) AS n; \
         INSERT INTO guarantee_changes (merchant, month, currency, state, units, amount_cents) \
         SELECT 'm-' || n, '2026-11-01', 'USD', 'open', 1, 1 FROM generate_series(1, {ROWS}) AS n; \
         INSERT INTO erased_orders SELECT 'acme', 'X-' || n, n FROM generate_series(1, {ROWS}) AS n; \
         INSERT INTO lookup_failures (at, merchant, order_digest, address) \
         SELECT now(), 'acme', sha256(n::text::bytea), 'x' FROM generate_series(1, {ROWS}) AS n; \
         INSERT INTO exchange_orders SELECT 'acme', 'E-' || n, 'X-' || n, 'X-' || n, now() \
         FROM generate_series(1, {ROWS}) AS n; \
         INSERT INTO discrepancies (merchant, at, kind, order_identifier, rma_identifier, detail) \
         SELECT 'acme', now(), 'refund_of_unknown_return', 'X-' || n, 'X-' || n, '{{}}' \
         FROM generate_series(1, {ROWS}) AS n; \
         INSERT INTO idempotency_keys (merchant, operation, key, request_digest, response, completed_at) \
         SELECT 'acme', 'returns', 'X-' || n, '', '{{\"rma_identifier\":\"X-' || n || '\"}}', now() \
         FROM generate_series(1, {ROWS}) AS n"
    )
}

#[tokio::test]
async fn plans_made_while_tables_were_empty_read_few_rows_of_full_ones() {
    let app = TestApp::alone().await;
    let off = "DO $$ DECLARE name TEXT; BEGIN \
                   FOR name IN SELECT quote_ident(relname) FROM pg_class \
                       WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' \
                   LOOP EXECUTE 'ALTER TABLE ' || name || ' SET (autovacuum_enabled = off)'; END LOOP; \
               END $$";
    app.service.database.execute_raw(off).await;
    app.service.database.execute_raw("VACUUM ANALYZE").await;
    let mut pooled = app.pool.get().await.unwrap();
    let mut leader = app.pool.dedicated().await.unwrap();
    let (of_replicas, of_leader) = STATEMENTS.split_at(STATEMENTS.len() - OF_LEADER);
    let own = [(of_replicas, &mut *pooled), (of_leader, &mut leader)];
    for (names, conn) in own {
        for name in names.iter().flat_map(|name| [name; WARM_UPS]) {
            testkit::reads(conn, async |conn: &mut AsyncPgConnection| {
                run(name, conn, "none").await
            })
            .await;
        }
    }
    app.store("acme", &projecting::order("A", 2)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.service.database.execute_raw(&fill()).await;
    let mut expensive = Vec::new();
    for (names, conn) in [(of_replicas, &mut *pooled), (of_leader, &mut leader)] {
        for name in names {
            let work = async |conn: &mut AsyncPgConnection| run(name, conn, &rma).await;
            let ((), reads) = testkit::reads(conn, work).await;
            if reads.rows > MAX_ROWS || reads.pages > MAX_PAGES {
                expensive.push(format!("{name}: {reads:?}"));
            }
        }
    }
    assert!(expensive.is_empty(), "{expensive:#?}");
}
