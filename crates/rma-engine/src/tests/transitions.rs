//! The transitions of a return by mail, from the incoming order to the messages to the merchant,
//! with and without managed receiving.

use domain::order::sample::message;

use super::projecting::{order, refunded};
use super::*;

/// The order-intake service with its own database.
struct Gateway {
    running: platform::Running,
    _database: testkit::Database,
}

impl Gateway {
    async fn open(app: &TestApp) -> Self {
        let database = testkit::Database::create(order_intake::App::migrations()).await;
        let mut settings = app.issuer.settings().to_vec();
        settings.push(("BROKER__RELAY_POLL_INTERVAL", "50ms"));
        let clock = Clock::system();
        let namespace = &app.service.namespace;
        let running =
            testkit::run::<order_intake::App>(&settings, clock, &database, namespace).await;
        for name in ["acme", "rival"] {
            publish_merchant(namespace, order_intake::App::NAME, merchant(name)).await;
        }
        Self { running, _database: database }
    }

    /// Publishes an order as its merchant does, and waits until it is projected.
    async fn publish(&self, app: &TestApp, merchant: &str, order: &Order) {
        let url = format!("{}/returns_portal_orders", self.running.url);
        let token = app.issuer.token(Some(merchant), "orders");
        let body = message([order]).to_string();
        eventually("the order is taken", SOON, || async {
            let request = app.client.post(&url).bearer_auth(&token).header("api-version", "3");
            let request = request.header("content-type", "application/json").body(body.clone());
            (request.send().await.unwrap().status() == StatusCode::OK).then_some(())
        })
        .await;
        app.projected(merchant, order).await;
    }
}

async fn report(app: &TestApp, merchant: &str, rma: &str, event: &str) {
    let token = app.issuer.token(None, "carrier");
    let body = json!({
        "event_identifier": format!("{rma} {event}"), "event": event, "rma_identifier": rma,
        "tracking_number": "1Z999",
    });
    let headers = [("x-service-id", merchant)];
    let path = "/v1/carrier_events";
    let (status, response) = app.send(Method::POST, path, &token, &headers, Some(&body)).await;
    assert_eq!((status, &response["applied"]), (StatusCode::OK, &json!(true)), "{response}");
}

/// The message that the merchant should receive.
struct Expected<'a> {
    order: &'a Order,
    made: &'a Value,
    managed: bool,
}

impl Expected<'_> {
    /// `parcel` is the tracking number and the status.
    fn message(&self, status: &str, updated_at: &Value, parcel: Option<(&str, &str)>) -> Value {
        let mut item = json!({
            "order_line_item_identifier": self.order.items[0].identifier,
            "order_identifier": self.order.identifier,
            "exchange_order_identifier": null,
            "original_order_identifier": null,
            "return_reason": "TOO_SMALL",
            "is_exchange": false,
            "sku": self.order.items[0].sku,
            "tracking_number": parcel.map(|it| it.0),
            "package_tracking_status": parcel.map(|it| it.1),
            "refund_financials": {
                "estimated_refund_amount_cents": 2165,
                "service_refund_amount_cents": 0,
                "shopper_refund_amount_cents": 2165,
            },
            "refund_type": "REFUND",
        });
        if self.managed {
            item["receiving_status"] = json!("PENDING");
        }
        json!({
            "rma_identifier": self.made["rma_identifier"],
            "status": status,
            "created_at": self.made["created_at"],
            "updated_at": updated_at,
            "items": [item.clone(), item],
            "return_method": "mail-back",
            "return_shipping_cost_cents": 0,
            "gift_refund_only": false,
        })
    }
}

#[tokio::test]
async fn the_merchant_receives_the_exact_message_of_each_transition() {
    let app = TestApp::alone().await;
    let mut managed = merchant("rival");
    (managed.version, managed.settings.managed_receiving) = (2, true);
    managed.settings.base_url = Some(app.sandbox.url("/rival"));
    publish_merchant(&app.service.namespace, App::NAME, managed).await;
    let gateway = Gateway::open(&app).await;
    for name in ["acme", "rival"] {
        let order = order("A", 2);
        gateway.publish(&app, name, &order).await;
        let made = eventually("the merchant's settings are known", SOON, || async {
            let (status, made) = app.post("/v1/returns", name, &refund_of("A", &[1, 2])).await;
            assert_eq!(status, StatusCode::CREATED, "{made}");
            let fits = made["managed_receiving"] == json!(name == "rival");
            if !fits {
                let rma = made["rma_identifier"].as_str().unwrap();
                app.post(&format!("/v1/returns/{rma}/cancel"), name, &json!({})).await;
            }
            fits.then_some(made)
        })
        .await;
        let rma = made["rma_identifier"].as_str().unwrap();
        report(&app, name, rma, "label").await;
        report(&app, name, rma, "in_transit").await;
        gateway.publish(&app, name, &refunded(&order, "R1", 2, Some(rma))).await;

        let mut arrivals = app.arrivals(name).await;
        arrivals.retain(|it| it.body["rma_identifier"] == *rma);
        let times: Vec<_> = arrivals.iter().map(|it| it.body["updated_at"].clone()).collect();
        assert_eq!(times[0], made["created_at"]);
        assert!(times.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()), "{times:?}");
        let expected = Expected { order: &order, made: &made, managed: name == "rival" };
        let moved = |status, index: usize, tracking| {
            expected.message(status, &times[index], Some(("1Z999", tracking)))
        };
        let bodies = [
            ("rma.created", expected.message("CREATED", &times[0], None)),
            ("rma.tracking_updated", moved("CREATED", 1, "PRE_TRANSIT")),
            ("rma.in_transit", moved("CREATED", 2, "TRANSIT")),
            ("rma.refunded", moved("REFUNDED", 3, "TRANSIT")),
        ];
        let wanted = bodies.into_iter().zip(1..).map(|((event, body), sequence)| Arrival {
            event: event.to_owned(),
            sequence,
            body,
        });
        assert_eq!(arrivals, wanted.collect::<Vec<_>>());
        assert_eq!(app.get(&format!("/v1/returns/{rma}"), name).await.1["status"], "REFUNDED");
    }
    assert!(gateway.running.stop().await, "the gateway did not stop in time");
}
