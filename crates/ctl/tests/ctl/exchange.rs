//! `backhaul exchange` against a running exchange service.

use serde_json::json;
use testkit::eventually;

use crate::app::{TIMEOUT, TestApp};

/// The event for a confirmed return of order 1001.
fn confirmation(rma: &str) -> String {
    let address = json!({
        "name": "Ada Byron", "street1": "1 Long Lane", "city": "London", "country_code": "GB",
    });
    let data = json!({
        "merchant": "acme", "rma_identifier": rma, "original_order_id": "1001", "currency": "USD",
        "is_gift": false, "customer": {"identifier": "c-1"}, "shipping_address": address,
        "billing_address": address, "confirmed_at": "2026-03-01T00:00:00Z",
        "gift_card": {"sku": "GIFT", "bonus_credit_amount_cents": 0},
        "units": [{
            "order_identifier": "1001", "order_line_item_identifier": "L1", "unit": 1,
            "sku": "TEE-S", "title": "Shirt", "product_identifier": "P-1",
            "unit_price_amount_cents": 2500, "product_amount_cents": 2500,
            "discount_amount_cents": 0, "tax_amount_cents": 0,
            "replacement": {"resolution": "gift_card"},
        }],
    });
    let id = uuid::Uuid::new_v4();
    json!({
        "specversion": "1.0", "id": id, "source": "/backhaul/rma-engine",
        "type": "return.confirmed.v1", "subject": "acme/1001", "time": "2026-03-01T00:00:00Z",
        "datacontenttype": "application/json", "data": data,
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_orders_and_variants_are_shown() {
    let app = TestApp::start().await;
    let merchant = sandbox::start(&sandbox::settings::Settings::for_tests().unwrap()).unwrap();
    let settings = [
        ("SEALING__KEYS", testkit::sealing_keys()),
        ("SHOPPER__PROOF_KEYS", testkit::sealing_keys()),
        ("DELIVERY__HTTPS_ONLY", "false"),
        ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
    ];
    let (_database, service) = app.start_service::<exchange::App>(&settings).await;
    let at = format!("--merchant acme --service-url {}", service.url);
    let base = merchant.url("");
    app.text(&format!("merchant add acme --name Acme --base-url {base}")).await;
    app.text("endpoint set acme exchange-order").await;

    let shown = eventually("the merchant is replicated", TIMEOUT, async || {
        let output = app.backhaul(&format!("exchange variants TEE {at}")).await;
        let text = String::from_utf8(output.stdout).unwrap();
        text.contains("TEE-M").then_some(text)
    })
    .await;
    expect_test::expect![[r#"
        SKU    TITLE        ATTRIBUTES  CENTS  IN STOCK
        TEE-S  TEE, size S  size S      2500   4
        TEE-M  TEE, size M  size M      2500   9
    "#]]
    .assert_eq(&shown);
    for rma in ["R-1", "R-2"] {
        app.namespace().publish_raw("exchange.return.confirmed.v1", &confirmation(rma)).await;
    }
    let placed = eventually("the order is placed", TIMEOUT, async || {
        let page = app.json(&format!("exchange list --state placed {at} --json")).await;
        page.pointer("/exchange_orders/0").cloned()
    })
    .await;
    assert_eq!(placed.get("exchange_order_identifier"), Some(&"EX-1001".into()));
    let listed = app.text(&format!("exchange list --original-order 1001 {at}")).await;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let all = format!("exchange list --all-merchants --service-url {}", service.url);
    let listed = app.text(&all).await;
    assert!(listed.starts_with("ORDER  MERCHANT") && listed.contains("\n1001   acme"), "{listed}");
    assert_eq!(listed.lines().count(), 3, "{listed}");
    // The row shows the identifier that was searched for.
    let found = app.text(&format!("{all} --exchange-order EX-1001")).await;
    assert!(found.contains(" EXCHANGE ORDER ") && found.contains(" EX-1001 "), "{found}");
    let shown = app.text(&format!("exchange show 1001 {at}")).await;
    assert!(shown.contains("EX-1001") && shown.contains("\nOTHER RETURNS"), "{shown}");
    assert!(shown.contains("L1:1 UNEVEN_EXCHANGE"), "{shown}");
    for other in ["EX-1001", "R-1", "R-2"] {
        assert_eq!(app.text(&format!("exchange show {other} {at}")).await, shown, "{other}");
    }
    app.error(&format!("exchange abandon 1001 {at}"), 2).await;
    let stderr = app.error(&format!("exchange abandon 1001 --note lost {at}"), 1).await;
    assert!(stderr.contains("only an undeliverable one can be abandoned"), "{stderr}");
    let stderr = app.error(&format!("exchange show 1002 {at}"), 1).await;
    assert!(stderr.contains("there is no exchange order for order 1002"), "{stderr}");
    app.error(&format!("exchange list --state lost {at}"), 2).await;
    assert!(service.stop().await);
}
