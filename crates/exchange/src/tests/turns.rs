//! A slow merchant does not delay the others.

use serde_json::{Value, json};
use testkit::eventually;

use super::app::{SOON, TestApp, confirmed, exchanged, gift_card_unit};

/// Inserts waiting confirmations as if they had just been received.
async fn waiting(app: &TestApp, merchant: &str, units: impl IntoIterator<Item = Value>) {
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
             received_at, leased_until) VALUES {}",
        rows.join(", "),
    );
    app.execute(&insert).await;
}

/// A unit with its own product, so that every confirmation needs its own lookup.
fn product(number: usize) -> Value {
    let mut unit = exchanged("L1", 1, "TEE-M", 2500);
    unit["variant_identifier"] = json!(format!("TEE-{number}"));
    unit
}

async fn still_waiting(app: &TestApp, merchant: &str) -> i64 {
    let query = format!(
        "SELECT count(*) AS n FROM confirmations WHERE state = 'waiting' AND merchant = '{merchant}'"
    );
    app.count(&query).await
}

#[tokio::test]
async fn a_slow_lookup_does_not_delay_other_returns() {
    let more = [
        ("PLACING__MAX_CONCURRENCY", "2"),
        ("VARIANTS__TIMEOUT", "60s"),
        ("PLACING__LEASE", "300s"),
    ];
    let app = TestApp::with_settings(&more).await;
    app.behave("/sku/TEE-0/variants", json!([{"do": "hang"}])).await;
    let others = (1..20).map(|_| gift_card_unit("L1", 1));
    waiting(&app, "acme", [product(0)].into_iter().chain(others)).await;
    eventually("all the others are decided", SOON, async || {
        (still_waiting(&app, "acme").await == 1).then_some(())
    })
    .await;
    assert_eq!(app.journal("/sku/TEE-0/variants").await.len(), 1);
}

#[tokio::test]
async fn a_slow_merchant_with_many_returns_does_not_delay_the_others() {
    let app = TestApp::with_settings(&[("PLACING__MAX_CONCURRENCY", "4")]).await;
    let slow = json!([{"do": "respond", "status": 404, "delay_ms": 250, "times": "always"}]);
    app.behave("/sku/*", slow).await;
    waiting(&app, "acme", (0..200).map(product)).await;
    waiting(&app, "rival", (0..10).map(|_| gift_card_unit("L1", 1))).await;
    eventually("the other merchant has its orders", SOON, async || {
        (still_waiting(&app, "rival").await == 0).then_some(())
    })
    .await;
    assert!(still_waiting(&app, "acme").await > 150, "rival waited for acme");
}
