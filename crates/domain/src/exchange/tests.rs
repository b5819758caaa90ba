mod check;
mod messages;
mod variant_identifiers;
mod variants;

use serde_json::{Value, json};

use crate::returns::ReturnConfirmed;

/// A confirmed return of order 1001: one shirt exchanged for another size, two for another
/// colour, and one for a gift card.
fn confirmed() -> ReturnConfirmed {
    let address = json!({
        "name": "Ada Byron", "street1": "1 Long Lane", "city": "London", "country_code": "GB",
    });
    let exchanged = |line: &str, unit: u8, sku: &str, cents: u32| {
        let variant = json!({
            "sku": sku, "title": format!("Shirt {sku}"), "unit_price_amount_cents": cents,
        });
        unit_of(line, unit, &json!({"resolution": "exchange", "variant": variant}))
    };
    let event = json!({
        "merchant": "acme", "rma_identifier": "R-1", "original_order_id": "1001",
        "currency": "USD", "is_gift": false,
        "customer": {"identifier": "c-1", "email": "ada@example.com"},
        "shipping_address": address, "billing_address": address,
        "units": [
            exchanged("L1", 1, "TEE-M", 2000),
            exchanged("L2", 1, "TEE-RED", 2500),
            exchanged("L2", 2, "TEE-RED", 2500),
            unit_of("L3", 1, &json!({"resolution": "gift_card"})),
        ],
        "gift_card": {"sku": "GIFT", "bonus_credit_amount_cents": 500},
        "confirmed_at": "2026-03-01T00:00:00Z",
    });
    serde_json::from_value(event).unwrap()
}

fn unit_of(line: &str, unit: u8, replacement: &Value) -> Value {
    json!({
        "order_identifier": "1001", "order_line_item_identifier": line, "unit": unit,
        "sku": "TEE-S", "title": "Shirt", "product_identifier": "P-1",
        "variant_identifier": "TEE", "concept": "Acme Sport", "unit_price_amount_cents": 2000,
        "product_amount_cents": 2000, "discount_amount_cents": 100 + i64::from(unit),
        "tax_amount_cents": 150, "replacement": replacement,
    })
}
