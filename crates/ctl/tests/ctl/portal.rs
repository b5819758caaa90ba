//! `backhaul portal` against a running RMA engine.

use domain::event::Event as _;
use domain::order::OrderStored;
use domain::order::sample::Orders;
use platform::Clock;
use serde_json::json;
use testkit::eventually;

use crate::app::{TIMEOUT, TestApp};

/// The event about a new order of acme, and the identifier of the order.
fn stored_order() -> (String, String) {
    let order = Orders::new(1, Clock::system().now()).next().unwrap();
    let identifier = order.identifier.clone();
    let stored = OrderStored { merchant: "acme".parse().unwrap(), order, is_reset: false };
    let event = json!({
        "specversion": "1.0", "id": uuid::Uuid::new_v4(), "source": "/backhaul/order-intake",
        "type": OrderStored::TYPE, "subject": stored.subject(), "time": "2026-03-01T00:00:00Z",
        "datacontenttype": "application/json", "sequence": "1", "data": stored,
    });
    (event.to_string(), identifier)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchants_own_client_links_to_an_order() {
    let app = TestApp::start().await;
    let settings = [
        ("SEALING__KEYS", testkit::sealing_keys()),
        ("SHOPPER__PROOF_KEYS", testkit::sealing_keys()),
        ("PORTAL__PUBLIC_URL", "https://portal.test"),
    ];
    let (_database, service) = app.start_service::<rma_engine::App>(&settings).await;
    app.set("RMA_URL", &service.url);
    app.text("merchant add acme --name Acme").await;
    app.add_client("--scope returns").await;

    let (event, order) = stored_order();
    app.namespace().publish_raw("rma-engine.order.stored.v1", &event).await;
    let link = eventually("the order is known", TIMEOUT, async || {
        let output = app.backhaul(&format!("portal link {order}")).await;
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    })
    .await;
    assert!(link.contains("\nlink         https://portal.test/acme/l/"), "{link}");
    assert!(link.contains("\ngift code    -\nworks until  20"), "{link}");

    let gift = app.json(&format!("portal link {order} --gift --valid-days 1 --json")).await;
    assert_eq!(gift["gift_code"].as_str().unwrap().len(), 14, "{gift}");
    let by_operator = app.json(&format!("portal link {order} --merchant acme --gift --json")).await;
    assert_eq!(by_operator["gift_code"], gift["gift_code"]);
    let stderr = app.error("portal link NONE", 1).await;
    assert!(stderr.starts_with("error: there is no order NONE\n"), "{stderr}");
    app.error(&format!("portal link {order} --valid-days 731"), 2).await;

    let id = gift["id"].as_str().unwrap();
    let revoked = app.json(&format!("portal revoke {id} --json")).await;
    assert_eq!((&revoked["id"], revoked["revoked_by"].is_string()), (&gift["id"], true));
    let links = app.json(&format!("portal links {order} --json")).await;
    let links = links["deep_links"].as_array().unwrap();
    assert_eq!(links.len(), 3, "{links:?}");
    assert_eq!(links.iter().find(|link| link["id"] == gift["id"]), Some(&revoked));
    assert!(app.text(&format!("portal links {order}")).await.contains(id));
    assert!(service.stop().await);
}
