//! Responses for giftees, who see no amounts.

use serde_json::Value;

/// Removes every member whose name ends with `_cents`, and objects that had only such members.
pub fn remove_amounts(value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|name, member| {
            let was_empty = is_empty_object(member);
            remove_amounts(member);
            !name.ends_with("_cents") && (was_empty || !is_empty_object(member))
        }),
        Value::Array(elements) => elements.iter_mut().for_each(remove_amounts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_empty_object(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}
