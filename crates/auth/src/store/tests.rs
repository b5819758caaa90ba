//! Lists read few rows of large tables, of one merchant and of all. A migration keeps the rules that merchants have.

use diesel_async::AsyncPgConnection;
use platform::Timestamp;

use super::audit::{self, AuditFilter};
use super::{clients, merchants, people, policy_versions};

/// Audit records, clients, people and versions of the policy of acme, which are the older half, and as many of rival; and merchants.
fn fill(rows: i64) -> String {
    format!(
        "INSERT INTO merchants SELECT 'm-' || n, 1, jsonb_build_object('settings', \
             jsonb_build_object('name', 'Shop ' || n)), now(), now() FROM generate_series(1, {rows}) AS n; \
         INSERT INTO merchants SELECT name, 1, \
             jsonb_build_object('settings', jsonb_build_object('name', name)), now(), now() \
         FROM unnest(ARRAY['acme', 'rival']) AS name; \
         INSERT INTO audit_records (created_at, actor, action, subject, merchant, detail) \
         SELECT to_timestamp(n), 'person-' || n % 7, CASE WHEN n % 1000 = 0 THEN 'rare' ELSE 'usual' END, \
             'x', CASE WHEN n <= {rows} THEN 'acme' ELSE 'rival' END, '{{}}' \
         FROM generate_series(1, 2 * {rows}) AS n; \
         INSERT INTO clients (id, merchant, name, scopes, created_at) \
         SELECT 'c-' || n, CASE WHEN n <= {rows} THEN 'acme' ELSE 'rival' END, 'x', 'orders', now() \
         FROM generate_series(1, 2 * {rows}) AS n; \
         INSERT INTO people (email, name, role, merchant, state, created_at) \
         SELECT n || '@shop.example', 'x', 'merchant-viewer', \
             CASE WHEN n <= {rows} THEN 'acme' ELSE 'rival' END, 'invited', now() \
         FROM generate_series(1, 2 * {rows}) AS n; \
         INSERT INTO merchant_policy_versions \
         SELECT CASE WHEN n <= {rows} THEN 'acme' ELSE 'rival' END, n, now(), 'ada', '[]' \
         FROM generate_series(1, 2 * {rows}) AS n"
    )
}

async fn filled(rows: i64) -> testkit::Database {
    let migrations = vec![messaging::MIGRATIONS, crate::MIGRATIONS];
    let database = testkit::Database::create(migrations).await;
    database.execute_raw(&fill(rows)).await;
    database.execute_raw("VACUUM ANALYZE").await;
    database
}

#[tokio::test]
async fn a_list_of_audit_records_reads_about_as_many_rows_as_it_shows() {
    // Rare actions of one person need many records.
    let rows = testkit::fill_rows().max(10_000);
    let database = filled(rows).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    let at = |seconds| Timestamp::from_timestamp(seconds, 0);
    let acme = Some("acme");
    let actor = Some("person-3");
    let action = Some("rare");
    let all = AuditFilter::default;
    let filters = [
        all(),
        AuditFilter { merchant: acme, ..all() },
        AuditFilter { actor, ..all() },
        AuditFilter { action, ..all() },
        AuditFilter { merchant: acme, actor, ..all() },
        AuditFilter { merchant: acme, action, ..all() },
        AuditFilter { actor, action, ..all() },
        AuditFilter { merchant: acme, actor, action, ..all() },
        AuditFilter { to: at(rows / 2), ..all() },
        AuditFilter { merchant: acme, from: at(rows / 4), to: at(rows / 2), ..all() },
    ];
    for filter in filters {
        for after in [None, Some(rows / 2)] {
            let find = async |conn: &mut AsyncPgConnection| {
                audit::page(conn, &filter, after, 10).await.unwrap().len()
            };
            let (found, reads) = testkit::reads(&mut conn, &find).await;
            assert!(found > 0, "{filter:?} finds nothing");
            let is_cheap = reads.rows <= 100 && reads.pages <= 60;
            assert!(is_cheap, "{filter:?} after {after:?}: {reads:?}");
        }
    }
}

#[tokio::test]
async fn lists_read_about_as_many_rows_as_they_show() {
    let rows = testkit::fill_rows();
    let database = filled(rows).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    let has_word = |number: &i64| number.to_string().starts_with("777");
    let with_word = i64::try_from((1..=rows).filter(has_word).count()).unwrap();
    let lists = ["clients", "clients of acme", "people", "people of acme", "versions of acme"];
    for list in lists.into_iter().chain(["merchants", "words"]) {
        let acme = list.ends_with("acme").then_some("acme");
        let find = async |conn: &mut AsyncPgConnection| match list {
            "clients" | "clients of acme" => {
                clients::page(conn, acme, "c-1", 10).await.unwrap().len()
            }
            "people" | "people of acme" => people::page(conn, acme, "1", 10).await.unwrap().len(),
            "versions of acme" => {
                policy_versions::page(conn, "acme", Some(rows / 2), 10).await.unwrap().len()
            }
            // The documents are not merchants, so the rows are found and then not understood.
            "merchants" => {
                merchants::page(conn, None, None, "m-1", 10).await.err().map_or(0, |_| 10)
            }
            _ => merchants::page(conn, None, Some("777"), "", 10).await.err().map_or(0, |_| 10),
        };
        let (found, reads) = testkit::reads(&mut conn, &find).await;
        assert_eq!(found, 10, "{list}");
        // A search for the start of a word reads all merchants that have it.
        let most = if list == "words" { 30 + 4 * with_word } else { 30 };
        assert!(reads.rows <= most && reads.pages <= 4 * most, "{list}: {reads:?}");
    }
}

const POLICY_VERSIONS: [&str; 2] = [
    include_str!("../../../../migrations/auth/2026-11-20-000011_policy_versions/down.sql"),
    include_str!("../../../../migrations/auth/2026-11-20-000011_policy_versions/up.sql"),
];

#[tokio::test]
async fn the_rules_that_merchants_have_become_their_first_versions() {
    let migrations = vec![messaging::MIGRATIONS, crate::MIGRATIONS];
    let database = testkit::Database::create(migrations).await;
    let [down, up] = POLICY_VERSIONS;
    database.execute_raw(down).await;
    database
        .execute_raw(
            r#"INSERT INTO merchants
               SELECT name, 7, jsonb_build_object('settings', settings::jsonb), to_timestamp(1), to_timestamp(9)
               FROM (VALUES
                   ('acme', '{"policy": {"rules": [{"id": "a", "then": {"returnable": true}}], "shoppers": {}}}'),
                   ('rival', '{"policy": {"rules": [], "shoppers": {}}}'),
                   ('third', '{}')) AS merchant (name, settings);
               INSERT INTO audit_records (created_at, actor, action, subject, merchant, detail)
               SELECT to_timestamp(at), actor, 'merchant.updated', 'merchant/acme', 'acme', detail::jsonb
               FROM (VALUES (2, 'ada', '{"policy": {}}'), (5, 'eve', '{"policy": {}}'), (6, 'bob', '{"name": "A"}'))
                   AS record (at, actor, detail)"#,
        )
        .await;
    database.execute_raw(up).await;
    assert_eq!(database.count("SELECT count(*) FROM merchant_policy_versions").await, 1);
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    let found = policy_versions::page(&mut conn, "acme", None, 10).await.unwrap();
    assert_eq!((found[0].version, found[0].actor.as_str()), (7, "eve"));
    assert_eq!(Some(found[0].created_at), Timestamp::from_timestamp(5, 0));
    assert_eq!(found[0].rules[0].id, "a");
}
