//! Request bodies.

use serde_json::{Value, json};

/// A unit of the only line of an order.
pub(super) fn unit(order: &str, unit: i32) -> Value {
    json!({
        "order_identifier": order, "order_line_item_identifier": format!("{order}-1"), "unit": unit,
    })
}

/// A unit with a reason and a resolution.
pub(super) fn choice(order: &str, number: i32, resolution: &Value) -> Value {
    let mut choice = unit(order, number);
    let choice_fields = choice.as_object_mut().unwrap();
    choice_fields.insert("return_reason".to_owned(), json!("TOO_SMALL"));
    choice_fields.extend(resolution.as_object().unwrap().clone());
    choice
}

/// Request body: return these units of an order by mail for a refund.
pub(super) fn refund_of(order: &str, units: &[i32]) -> Value {
    let refund = json!({ "resolution": "refund" });
    let units: Vec<_> = units.iter().map(|number| choice(order, *number, &refund)).collect();
    json!({ "return_method": "mail-back", "units": units })
}
