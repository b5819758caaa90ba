use expect_test::expect;
use serde_json::json;

use super::*;

fn pretty(message: &RmaMessage) -> String {
    format!("{:#}", json!(message))
}

#[test]
fn the_message_has_only_the_fields_of_the_contract() {
    let refund = [("A/L1/1", Resolution::Refund)];
    let plain = rma_with("RMA-1", ReturnMethod::ExpressReturns, &refund, &settings(false));
    expect![[r#"
        {
          "created_at": "2026-03-10T12:00:00Z",
          "gift_refund_only": false,
          "items": [
            {
              "exchange_order_identifier": null,
              "is_exchange": false,
              "order_identifier": "A",
              "order_line_item_identifier": "L1",
              "original_order_identifier": null,
              "package_tracking_status": null,
              "refund_financials": {
                "estimated_refund_amount_cents": 980,
                "service_refund_amount_cents": 0,
                "shopper_refund_amount_cents": 980
              },
              "refund_type": "REFUND",
              "return_reason": "TOO_SMALL",
              "sku": "SHIRT-M",
              "tracking_number": null
            }
          ],
          "return_method": "express-returns",
          "return_shipping_cost_cents": 0,
          "rma_identifier": "RMA-1",
          "status": "CREATED",
          "updated_at": "2026-03-10T12:00:00Z"
        }"#]]
    .assert_eq(&pretty(&plain.message()));
}

#[test]
fn optional_fields_appear_when_they_have_a_value() {
    let exchanged = [("B/L1/1", variant(1000)), ("B/L1/2", variant(1200))];
    let mut full = rma_with("RMA-2", ReturnMethod::MailBack, &exchanged, &settings(true));
    full.giftee_email = Some("gia@mail.example".to_owned());
    full.units[0].original_order_identifier = Some("A".to_owned());
    let mut placed = placed_units(&[unit("B/L1/1")]);
    placed.insert(unit("B/L1/2"), RefundType::UnevenExchange);
    full.exchange_placed(&placed, "X-1", minute(1)).unwrap();
    full.track(&report(TrackingEvent::Label, Some("1Z")), minute(2)).unwrap();
    expect![[r#"
        {
          "created_at": "2026-03-10T12:00:00Z",
          "gift_refund_only": true,
          "giftee_email": "gia@mail.example",
          "items": [
            {
              "exchange_order_identifier": "X-1",
              "is_exchange": true,
              "order_identifier": "B",
              "order_line_item_identifier": "L1",
              "original_order_identifier": "A",
              "package_tracking_status": "PRE_TRANSIT",
              "receiving_status": "PENDING",
              "refund_financials": {
                "estimated_refund_amount_cents": 980,
                "service_refund_amount_cents": 980,
                "shopper_refund_amount_cents": 0
              },
              "refund_type": "EVEN_EXCHANGE",
              "return_reason": "TOO_SMALL",
              "sku": "SHIRT-M",
              "tracking_number": "1Z"
            },
            {
              "exchange_order_identifier": "X-1",
              "is_exchange": true,
              "order_identifier": "B",
              "order_line_item_identifier": "L1",
              "original_order_identifier": null,
              "package_tracking_status": "PRE_TRANSIT",
              "receiving_status": "PENDING",
              "refund_financials": {
                "estimated_refund_amount_cents": 980,
                "service_refund_amount_cents": 980,
                "shopper_refund_amount_cents": 0
              },
              "refund_type": "UNEVEN_EXCHANGE",
              "return_reason": "TOO_SMALL",
              "sku": "SHIRT-M",
              "tracking_number": "1Z"
            }
          ],
          "return_method": "mail-back",
          "return_shipping_cost_cents": 0,
          "rma_identifier": "RMA-2",
          "status": "CREATED",
          "updated_at": "2026-03-10T12:02:00Z"
        }"#]]
    .assert_eq(&pretty(&full.message()));
}
