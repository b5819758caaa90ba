//! The statements that store a return: their order, and the rows that they write.

use diesel_async::SimpleAsyncConnection as _;

use super::projecting::order;
use super::*;

/// Another transaction puts a unit into a return and does what `statement` says. It commits when the
/// request waits for it.
async fn response_beside(app: &TestApp, statement: &str) -> (StatusCode, Value) {
    let mut conn = app.pool.get().await.unwrap();
    let taken =
        "INSERT INTO return_units VALUES ('acme', 'other', 'A', 'A-1', 1, true, false, NULL, 0)";
    conn.batch_execute(&format!("BEGIN; {statement}; {taken}")).await.unwrap();
    let committing = async {
        let waiting = "SELECT count(*) AS n FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("the request waits", SOON, async || {
            (app.number(waiting).await > 0).then_some(())
        })
        .await;
        conn.batch_execute("COMMIT").await.unwrap();
    };
    let body = refund_of("A", &[1]);
    tokio::join!(app.post("/v1/returns", "acme", &body), committing).0
}

#[tokio::test]
async fn a_unit_that_is_taken_while_the_return_is_stored_is_a_conflict() {
    let app = TestApp::alone().await;
    app.store("acme", &order("A", 1)).await;
    let (status, refusal) = response_beside(&app, "SELECT 1").await;
    assert_eq!(status, StatusCode::CONFLICT, "{refusal}");
    assert_eq!(app.number("SELECT count(*) AS n FROM returns WHERE merchant = 'acme'").await, 0);
    assert_eq!(
        app.number("SELECT count(*) AS n FROM delivery_messages WHERE merchant = 'acme'").await,
        0
    );
}

#[tokio::test]
async fn units_are_read_after_their_order_is_locked() {
    let app = TestApp::alone().await;
    app.store("acme", &order("A", 1)).await;
    let lock = "SELECT 1 FROM orders WHERE identifier = 'A' FOR UPDATE";
    let (status, refusal) = response_beside(&app, lock).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["ineligible"][0]["code"], "already_returned", "{refusal}");
}

#[tokio::test]
async fn a_change_of_a_return_adds_nothing_to_the_indexes() {
    let database = testkit::Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    let change = "INSERT INTO returns SELECT 'acme', 'R-' || n, 'CREATED', n || '@shop.example', NULL, \
                      repeat('x', 1500), now(), now() FROM generate_series(1, 50) AS n; \
                  BEGIN; \
                  UPDATE returns SET status = 'CREATED', document = repeat('y', 1500), \
                      updated_at = now() WHERE rma_identifier = 'R-20'";
    conn.batch_execute(change).await.unwrap();
    let hot = "SELECT n_tup_hot_upd AS n FROM pg_stat_xact_user_tables WHERE relname = 'returns'";
    assert_eq!(testkit::count(&mut conn, hot).await, 1);
}
