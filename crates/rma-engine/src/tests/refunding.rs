//! Refunds find the returns they are for, however many and however large those are.

use diesel_async::SimpleAsyncConnection as _;

use super::projecting::{order, refunded};
use super::*;

#[tokio::test]
async fn large_returns_are_read_a_few_at_a_time() {
    let stage = Stage::set().await;
    let order = order("A", 7);
    stage.store("acme", &order).await;
    let mut rmas = Vec::new();
    for unit in 1..=7 {
        rmas.push(stage.start_return(&refund_of("A", &[unit])).await);
    }
    // Three of them are more than is read at once; spaces behind a document mean nothing.
    let mut conn = stage.pool.get().await.unwrap();
    let grow = "UPDATE returns SET document = document || repeat(' ', 3 * 1024 * 1024)";
    conn.batch_execute(grow).await.unwrap();
    // Two snapshots in one go, of which the first covers one of the last.
    let first = refunded(&order, "R1", 1, Some(&rmas[6]));
    let second = refunded(&first, "R2", 6, None);
    stage.publish("acme", &first).await;
    stage.store("acme", &second).await;
    for rma in &rmas {
        assert_eq!(stage.show(rma).await["status"], "REFUNDED");
    }
    assert_eq!(stage.told().await, [["rma.created"; 7], ["rma.refunded"; 7]].concat());
    assert_eq!(stage.number("SELECT count(*) AS n FROM discrepancies").await, 0);
}

#[tokio::test]
async fn a_return_that_holds_nothing_any_more_is_not_waited_for() {
    let stage = Stage::set().await;
    let order = order("A", 1);
    stage.store("acme", &order).await;
    let canceled = stage.start_return(&refund_of("A", &[1])).await;
    let path = format!("/v1/returns/{canceled}/cancel");
    assert_eq!(stage.post(&path, "acme", &json!({})).await.0, StatusCode::OK);
    let open = stage.start_return(&refund_of("A", &[1])).await;
    let mut conn = stage.pool.get().await.unwrap();
    let lock = format!("BEGIN; SELECT FROM returns WHERE rma_identifier = '{canceled}' FOR UPDATE");
    conn.batch_execute(&lock).await.unwrap();
    stage.publish("acme", &refunded(&order, "R1", 1, None)).await;
    eventually("the open one is refunded", SOON, || async {
        (stage.show(&open).await["status"] == "REFUNDED").then_some(())
    })
    .await;
    conn.batch_execute("ROLLBACK").await.unwrap();
}
