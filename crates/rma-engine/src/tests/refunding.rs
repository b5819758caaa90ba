//! Refunds are matched with many and with large returns.

use diesel_async::SimpleAsyncConnection as _;

use super::projecting::{order, refunded};
use super::*;

#[tokio::test]
async fn large_returns_are_read_in_chunks() {
    let app = TestApp::start().await;
    let order = order("A", 7);
    app.store("acme", &order).await;
    let mut rmas = Vec::new();
    for unit in 1..=7 {
        rmas.push(app.start_return(&refund_of("A", &[unit])).await);
    }
    // Three of them exceed one chunk; trailing spaces do not change a JSON document.
    let mut conn = app.pool.get().await.unwrap();
    let grow = "UPDATE returns SET document = document || repeat(' ', 3 * 1024 * 1024)";
    conn.batch_execute(grow).await.unwrap();
    // Two snapshots in one batch; the first refunds one unit of the last return.
    let first = refunded(&order, "R1", 1, Some(&rmas[6]));
    let second = refunded(&first, "R2", 6, None);
    app.publish("acme", &first).await;
    app.store("acme", &second).await;
    for rma in &rmas {
        assert_eq!(app.show(rma).await["status"], "REFUNDED");
    }
    assert_eq!(app.told().await, [["rma.created"; 7], ["rma.refunded"; 7]].concat());
    assert_eq!(app.number("SELECT count(*) AS n FROM discrepancies").await, 0);
}

#[tokio::test]
async fn a_return_without_held_units_is_not_locked() {
    let app = TestApp::start().await;
    let order = order("A", 1);
    app.store("acme", &order).await;
    let canceled = app.start_return(&refund_of("A", &[1])).await;
    let path = format!("/v1/returns/{canceled}/cancel");
    assert_eq!(app.post(&path, "acme", &json!({})).await.0, StatusCode::OK);
    let open = app.start_return(&refund_of("A", &[1])).await;
    let mut conn = app.pool.get().await.unwrap();
    let lock = format!("BEGIN; SELECT FROM returns WHERE rma_identifier = '{canceled}' FOR UPDATE");
    conn.batch_execute(&lock).await.unwrap();
    app.publish("acme", &refunded(&order, "R1", 1, None)).await;
    eventually("the open one is refunded", SOON, || async {
        (app.show(&open).await["status"] == "REFUNDED").then_some(())
    })
    .await;
    conn.batch_execute("ROLLBACK").await.unwrap();
}
