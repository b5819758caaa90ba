//! Breaks generated messages in known fields, and expects exactly those fields to be reported.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;

use super::contract::{ADDRESS, CUSTOMER, FieldType, Fields, LINE, ORDER, REFUND, REFUND_LINE};
use super::*;
use crate::json::Code;

/// A change that makes a message invalid.
#[derive(Debug, Clone)]
pub(super) struct Violation {
    /// JSON pointer of the field that must be reported.
    pub(super) at: String,
    /// The new value. `None` removes the key.
    pub(super) value: Option<Value>,
    code: Code,
    /// Fields that must not change, or else this is no violation.
    pub(super) relies_on: Vec<String>,
}

impl Violation {
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let touches = |it: &Self| [it.relies_on.clone(), vec![it.at.clone()]].concat();
        let within = |a: &str, b: &str| format!("{a}/").starts_with(&format!("{b}/"));
        touches(self).iter().any(|a| touches(other).iter().any(|b| within(a, b) || within(b, a)))
    }

    pub(super) fn apply(&self, message: &mut Value) {
        let (parent, key) = self.at.rsplit_once('/').unwrap();
        let parent = message.pointer_mut(parent).unwrap();
        match (&self.value, parent) {
            (Some(value), Value::Object(members)) => {
                drop(members.insert(key.to_owned(), value.clone()))
            }
            (None, Value::Object(members)) => drop(members.remove(key).unwrap()),
            (value, Value::Array(elements)) => {
                elements[key.parse::<usize>().unwrap()] = value.clone().unwrap();
            }
            (_, other) => panic!("{other} has no members"),
        }
    }

    fn json_path(&self) -> String {
        let steps = self.at.split('/').skip(1).map(|step| match step.parse::<usize>() {
            Ok(index) => format!("[{index}]"),
            Err(_) if step.contains(' ') => format!("['{step}']"),
            Err(_) => format!(".{step}"),
        });
        std::iter::once("$".to_owned()).chain(steps).collect()
    }
}

/// All known violations of a message.
pub(super) fn violations(message: &Value) -> Vec<Violation> {
    let mut all = Vec::new();
    let orders = "/returns_portal_order/orders";
    for index in 0..count(message, orders) {
        add_order_violations(&mut all, message, &format!("{orders}/{index}"));
    }
    all
}

fn add_order_violations(all: &mut Vec<Violation>, message: &Value, order: &str) {
    let customer = if message.pointer(&format!("{order}/customer")).is_some() {
        let both = violation(format!("{order}/the service"), Some(json!({})), Code::Invalid);
        all.push(Violation { relies_on: vec![format!("{order}/customer")], ..both });
        "customer"
    } else {
        "the service"
    };
    add_object_violations(all, order, &ORDER);
    all.push(violation(format!("{order}/{customer}"), Some(json!("Ada")), Code::InvalidType));
    add_object_violations(all, &format!("{order}/{customer}"), &CUSTOMER);
    add_object_violations(all, &format!("{order}/shipping_address"), &ADDRESS);
    add_object_violations(all, &format!("{order}/billing_address"), &ADDRESS);
    for index in 0..count(message, &format!("{order}/items")) {
        add_line_violations(all, message, order, index);
    }
    for index in 0..count(message, &format!("{order}/refunds")) {
        let refund = format!("{order}/refunds/{index}");
        add_object_violations(all, &refund, &REFUND);
        let line = format!("{refund}/refund_line_items/0");
        add_object_violations(all, &line, &REFUND_LINE);
        let item = format!("{line}/order_item_identifier");
        let quantity = format!("{line}/quantity");
        let items = format!("{order}/items");
        let unknown = violation(item.clone(), Some(json!("no such line")), Code::Invalid);
        all.push(Violation { relies_on: vec![items.clone(), quantity.clone()], ..unknown });
        let too_many = violation(quantity, Some(json!(999)), Code::Invalid);
        all.push(Violation { relies_on: vec![items, item], ..too_many });
    }
}

fn add_line_violations(all: &mut Vec<Violation>, message: &Value, order: &str, index: usize) {
    let line = format!("{order}/items/{index}");
    all.push(violation(line.clone(), Some(json!("a line")), Code::InvalidType));
    add_object_violations(all, &line, &LINE);
    if index > 0 {
        let first = format!("{order}/items/0/identifier");
        let again = message.pointer(&first).cloned();
        let twice = violation(format!("{line}/identifier"), again, Code::Invalid);
        all.push(Violation { relies_on: vec![first], ..twice });
    }
    let units = message.pointer(&format!("{line}/quantity_shipped")).and_then(Value::as_i64);
    if units > Some(1) {
        let few = violation(format!("{line}/quantity"), Some(json!(1)), Code::Invalid);
        let others = ["quantity_shipped", "quantity_canceled"];
        let relies_on = others.iter().map(|key| format!("{line}/{key}")).collect();
        all.push(Violation { relies_on, ..few });
    }
}

fn add_object_violations(all: &mut Vec<Violation>, object: &str, fields: &Fields) {
    for (key, field_type) in fields.required {
        let at = format!("{object}/{key}");
        all.push(violation(at.clone(), None, Code::MissingField));
        all.push(violation(at, Some(Value::Null), Code::InvalidType));
        add_field_violations(all, object, key, *field_type);
    }
    for (key, field_type) in fields.optional {
        add_field_violations(all, object, key, *field_type);
    }
}

fn add_field_violations(all: &mut Vec<Violation>, object: &str, key: &str, field_type: FieldType) {
    let values = field_type.invalid_values().into_iter();
    all.extend(values.map(|(value, code)| violation(format!("{object}/{key}"), Some(value), code)));
}

fn violation(at: String, value: Option<Value>, code: Code) -> Violation {
    Violation { at, value, code, relies_on: Vec::new() }
}

fn count(message: &Value, pointer: &str) -> usize {
    message.pointer(pointer).and_then(Value::as_array).map_or(0, Vec::len)
}

/// A message of generated orders, with the shopper under the alias if `aliased`.
pub(super) fn sample_message(seed: u64, orders: usize, aliased: bool) -> Value {
    let mut message = message(&sample_orders(seed).take(orders).collect::<Vec<_>>());
    if aliased {
        for order in message["returns_portal_order"]["orders"].as_array_mut().unwrap() {
            let customer = order.as_object_mut().unwrap().remove("customer").unwrap();
            order["the service"] = customer;
        }
    }
    message
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn exactly_the_seeded_violations_are_reported(
        seed in 0u64..10_000,
        orders in 1usize..6,
        aliased: bool,
        picks in prop::collection::vec(any::<Index>(), 1..=20),
    ) {
        let mut message = sample_message(seed, orders, aliased);
        let possible = violations(&message);
        let mut seeded: Vec<Violation> = Vec::new();
        for pick in picks {
            let violation = pick.get(&possible);
            if !seeded.iter().any(|other| other.conflicts(violation)) {
                violation.apply(&mut message);
                seeded.push(violation.clone());
            }
        }
        let expected: BTreeSet<_> = seeded.iter().map(|it| (it.json_path(), it.code)).collect();
        let invalid = read(&message, OrderPolicy::default()).unwrap_err();
        let found: BTreeSet<_> = invalid.errors.into_iter().map(|it| (it.field, it.code)).collect();
        prop_assert_eq!(found, expected);
    }
}
