mod amounts;
mod contract;
mod rules;
mod samples;
mod schemas;
mod snapshots;
mod violations;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::sample::{Orders, message};
use super::{OrderMessage, OrderPolicy, OrderStatus};
use crate::json::{Document, ValidationError};

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn sample_orders(seed: u64) -> Orders {
    Orders::new(seed, time("2026-03-01T00:00:00Z"))
}

fn read(message: &Value, policy: OrderPolicy) -> Result<OrderMessage, ValidationError> {
    let document = Document::parse(message.to_string().as_bytes()).unwrap();
    OrderMessage::read(&document, policy, time("2026-03-01T00:00:00Z"))
}

/// A small shipped order of two lines with one refund.
fn plain_order() -> Value {
    let line = |identifier: &str, units: i64, price: i64| {
        json!({
            "identifier": identifier, "sku": format!("SKU-{identifier}"), "title": "Shirt",
            "quantity": units, "quantity_shipped": units, "quantity_canceled": 0,
            "product_amount_cents": units * price, "tax_amount_cents": 10,
            "discount_amount_cents": 0, "unit_price_amount_cents": price,
        })
    };
    let address = json!({
        "name": "Ada Adler", "street1": "1 Elm Street", "city": "Albany", "country_code": "US",
    });
    json!({
        "identifier": "1001", "status": "Shipped", "currency": "USD",
        "total_amount_cents": 4020, "product_amount_cents": 4000, "tax_amount_cents": 20,
        "discount_amount_cents": 0, "shipping_amount_cents": 0, "shipping_tax_amount_cents": 0,
        "created_at": "2026-01-01T10:00:00Z", "updated_at": "2026-01-02T10:00:00+01:00",
        "items": [line("L1", 3, 1000), line("L2", 1, 1000)],
        "customer": { "email": "ada@mail.example" },
        "shipping_address": address, "billing_address": address,
        "transactions": [], "discounts": [],
        "refunds": [{
            "identifier": "R1", "total_refund_amount_cents": 2000, "created_at": "2026-01-02T09:00:00Z",
            "refund_line_items": [{ "identifier": "R1-1", "quantity": 2, "order_item_identifier": "L1" }],
        }],
    })
}

fn order_message(order: Value) -> Value {
    json!({ "returns_portal_order": { "orders": [order] } })
}
