//! Spoils made-up messages in known places and expects exactly those places to be found.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;

use super::contract::{ADDRESS, CUSTOMER, Fields, Kind, LINE, ORDER, REFUND, REFUND_LINE};
use super::*;
use crate::json::Code;

/// One way to spoil a message.
#[derive(Debug, Clone)]
pub(super) struct Violation {
    /// JSON pointer of the field that must be reported.
    pub(super) at: String,
    /// What to put there; `None` removes the key.
    pub(super) value: Option<Value>,
    code: Code,
    /// Other fields that must stay as they are for this to be a violation.
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

/// Every way to spoil a message that this file knows.
pub(super) fn violations(message: &Value) -> Vec<Violation> {
    let mut all = Vec::new();
    let orders = "/returns_portal_order/orders";
    for index in 0..count(message, orders) {
        spoil_order(&mut all, message, &format!("{orders}/{index}"));
    }
    all
}

fn spoil_order(all: &mut Vec<Violation>, message: &Value, order: &str) {
    let customer = if message.pointer(&format!("{order}/customer")).is_some() {
        let both = spoiled(format!("{order}/the service"), Some(json!({})), Code::Invalid);
        all.push(Violation { relies_on: vec![format!("{order}/customer")], ..both });
        "customer"
    } else {
        "the service"
    };
    spoil(all, order, &ORDER);
    all.push(spoiled(format!("{order}/{customer}"), Some(json!("Ada")), Code::InvalidType));
    spoil(all, &format!("{order}/{customer}"), &CUSTOMER);
    spoil(all, &format!("{order}/shipping_address"), &ADDRESS);
    spoil(all, &format!("{order}/billing_address"), &ADDRESS);
    for index in 0..count(message, &format!("{order}/items")) {
        spoil_line(all, message, order, index);
    }
    for index in 0..count(message, &format!("{order}/refunds")) {
        let refund = format!("{order}/refunds/{index}");
        spoil(all, &refund, &REFUND);
        let line = format!("{refund}/refund_line_items/0");
        spoil(all, &line, &REFUND_LINE);
        let (item, quantity) =
            (format!("{line}/order_item_identifier"), format!("{line}/quantity"));
        let items = format!("{order}/items");
        let unknown = spoiled(item.clone(), Some(json!("no such line")), Code::Invalid);
        all.push(Violation { relies_on: vec![items.clone(), quantity.clone()], ..unknown });
        let too_many = spoiled(quantity, Some(json!(999)), Code::Invalid);
        all.push(Violation { relies_on: vec![items, item], ..too_many });
    }
}

fn spoil_line(all: &mut Vec<Violation>, message: &Value, order: &str, index: usize) {
    let line = format!("{order}/items/{index}");
    all.push(spoiled(line.clone(), Some(json!("a line")), Code::InvalidType));
    spoil(all, &line, &LINE);
    if index > 0 {
        let first = format!("{order}/items/0/identifier");
        let again = message.pointer(&first).cloned();
        let twice = spoiled(format!("{line}/identifier"), again, Code::Invalid);
        all.push(Violation { relies_on: vec![first], ..twice });
    }
    let units = message.pointer(&format!("{line}/quantity_shipped")).and_then(Value::as_i64);
    if units > Some(1) {
        let few = spoiled(format!("{line}/quantity"), Some(json!(1)), Code::Invalid);
        let others = ["quantity_shipped", "quantity_canceled"];
        let relies_on = others.iter().map(|key| format!("{line}/{key}")).collect();
        all.push(Violation { relies_on, ..few });
    }
}

fn spoil(all: &mut Vec<Violation>, object: &str, fields: &Fields) {
    for (key, kind) in fields.required {
        let at = format!("{object}/{key}");
        all.push(spoiled(at.clone(), None, Code::MissingField));
        all.push(spoiled(at, Some(Value::Null), Code::InvalidType));
        spoil_field(all, object, key, *kind);
    }
    for (key, kind) in fields.optional {
        spoil_field(all, object, key, *kind);
    }
}

fn spoil_field(all: &mut Vec<Violation>, object: &str, key: &str, kind: Kind) {
    let refused = kind.refused().into_iter();
    all.extend(refused.map(|(value, code)| spoiled(format!("{object}/{key}"), Some(value), code)));
}

fn spoiled(at: String, value: Option<Value>, code: Code) -> Violation {
    Violation { at, value, code, relies_on: Vec::new() }
}

fn count(message: &Value, pointer: &str) -> usize {
    message.pointer(pointer).and_then(Value::as_array).map_or(0, Vec::len)
}

/// A message of a few orders, some with the shopper under the other key.
pub(super) fn sample_message(seed: u64, orders: usize, aliased: bool) -> Value {
    let mut message = message(&shop(seed).take(orders).collect::<Vec<_>>());
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
    fn exactly_the_seeded_violations_are_found(
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
