//! Whoever waits for a merchant holds up nobody else.

use serde_json::{Value, json};
use testkit::eventually;

use super::stage::{SOON, Stage, carded, confirmed, exchanged};

/// Writes down confirmations that wait, as if they had just been heard.
async fn waiting(stage: &Stage, merchant: &str, units: impl IntoIterator<Item = Value>) {
    let rows: Vec<_> = units
        .into_iter()
        .enumerate()
        .map(|(number, unit)| {
            let (rma, order) = (format!("R-{merchant}-{number}"), format!("{merchant}-{number}"));
            let mut confirmed = confirmed(&rma, &order, &[unit]);
            confirmed.merchant = merchant.parse().unwrap();
            format!(
                "('{merchant}', '{order}', '{rma}', 'waiting', '{}', now(), now())",
                json!(confirmed)
            )
        })
        .collect();
    let insert = format!(
        "INSERT INTO confirmations (merchant, original_order_id, rma_identifier, state, document, \
             received_at, claimed_until) VALUES {}",
        rows.join(", "),
    );
    stage.execute(&insert).await;
}

/// Of a product of its own, so that every one asks for itself.
fn product(number: usize) -> Value {
    let mut unit = exchanged("L1", 1, "TEE-M", 2500);
    unit["variant_identifier"] = json!(format!("TEE-{number}"));
    unit
}

async fn still_waiting(stage: &Stage, merchant: &str) -> i64 {
    let query = format!(
        "SELECT count(*) AS n FROM confirmations WHERE state = 'waiting' AND merchant = '{merchant}'"
    );
    stage.count(&query).await
}

#[tokio::test]
async fn a_slow_question_holds_up_nobody_else() {
    let more = [("PLACING__BATCH", "2"), ("VARIANTS__BUDGET", "60s"), ("PLACING__LEASE", "300s")];
    let stage = Stage::with(&more).await;
    stage.behave("/sku/TEE-0/variants", json!([{"do": "hang"}])).await;
    let others = (1..20).map(|_| carded("L1", 1));
    waiting(&stage, "acme", [product(0)].into_iter().chain(others)).await;
    eventually("all the others are decided", SOON, async || {
        (still_waiting(&stage, "acme").await == 1).then_some(())
    })
    .await;
    assert_eq!(stage.journal("/sku/TEE-0/variants").await.len(), 1);
}

#[tokio::test]
async fn a_slow_merchant_with_many_returns_does_not_keep_the_others_waiting() {
    let stage = Stage::with(&[("PLACING__BATCH", "4")]).await;
    let slow = json!([{"do": "answer", "status": 404, "delay_ms": 250, "times": "always"}]);
    stage.behave("/sku/*", slow).await;
    waiting(&stage, "acme", (0..200).map(product)).await;
    waiting(&stage, "rival", (0..10).map(|_| carded("L1", 1))).await;
    eventually("the other merchant has its orders", SOON, async || {
        (still_waiting(&stage, "rival").await == 0).then_some(())
    })
    .await;
    assert!(still_waiting(&stage, "acme").await > 150, "it waited for all of them");
}
