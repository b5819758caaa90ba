//! The published schema and the reader accept the same messages.

use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::sample::Index;

use super::super::{OrderStored, message_schema, stored_schema};
use super::violations::{Violation, sample_message, violations};
use super::*;

static MESSAGE: LazyLock<Validator> = LazyLock::new(|| validator(&message_schema()));

fn validator(schema: &Value) -> Validator {
    jsonschema::options().should_validate_formats(true).build(schema).unwrap()
}

#[track_caller]
fn check(message: &Value) {
    let by_code = read(message, OrderPolicy::default());
    let by_schema = MESSAGE.validate(message);
    assert_eq!(by_code.is_ok(), by_schema.is_ok(), "{by_code:?}\n{by_schema:?}");
}

/// Whether only the reader can detect the violation.
fn is_beyond_a_schema(violation: &Violation) -> bool {
    let spans_fields = !violation.relies_on.is_empty() && !violation.at.ends_with("the service");
    spans_fields || violation.value == Some(json!("a\0b"))
}

proptest! {
    #[test]
    fn schema_and_reader_accept_samples(seed in 0u64..10_000, aliased: bool) {
        let message = sample_message(seed, 5, aliased);
        prop_assert!(read(&message, OrderPolicy::default()).is_ok());
        prop_assert!(MESSAGE.is_valid(&message));
    }

    #[test]
    fn schema_and_reader_reject_violations(
        seed in 0u64..10_000,
        aliased: bool,
        pick: Index,
    ) {
        let mut message = sample_message(seed, 2, aliased);
        let mut possible = violations(&message);
        possible.retain(|violation| !is_beyond_a_schema(violation));
        pick.get(&possible).apply(&mut message);
        prop_assert!(read(&message, OrderPolicy::default()).is_err());
        prop_assert!(!MESSAGE.is_valid(&message), "the schema accepts {:?}", pick.get(&possible));
    }

    #[test]
    fn schema_and_reader_agree_on_arbitrary_changes(
        seed in 0u64..10_000,
        index: Index,
        value in prop_oneof![
            Just(json!(null)), Just(json!("")), Just(json!("x")), Just(json!("Canceled")),
            Just(json!("US")), Just(json!("EUR")), Just(json!(0)), Just(json!(-1)),
            Just(json!(1001)), Just(json!(0.5)), Just(json!(1.0)), Just(json!(1e3)), Just(json!([])), Just(json!(["x"])),
            Just(json!({})), Just(json!(true)), Just(json!("2026-01-01T00:00:00.5+02:00")),
        ],
    ) {
        let mut message = sample_message(seed, 1, false);
        let mut pointers = Vec::new();
        list_pointers(&message, "", &mut pointers);
        // A schema cannot compare quantities, refunds and identifiers with each other.
        pointers.retain(|at| !at.contains("quantity") && !at.contains("dentifier"));
        let pointer: &String = index.get(&pointers);
        *message.pointer_mut(pointer).unwrap() = value;
        check(&message);
    }
}

#[test]
fn schema_and_reader_agree_on_times() {
    let parts: [&[&str]; 5] = [
        &["2026-01-02", "2024-02-29", "2023-02-29", "2026-1-2", "26-01-02"],
        &["T", "t", " ", "_", ""],
        &["10:00:00", "23:59:59", "24:00:00", "10:60:00", "10:00:60", "10:00"],
        &["", ".5", ".1234567890", ".", ",5"],
        &["Z", "z", "+02:00", "-23:59", "\u{2212}02:00", "+24:00", "+0200", ""],
    ];
    let times = parts.iter().fold(vec![String::new()], |prefixes, part| {
        prefixes.iter().flat_map(|time| part.iter().map(move |it| format!("{time}{it}"))).collect()
    });
    let mut order = plain_order();
    for time in times {
        order["created_at"] = json!(time);
        check(&order_message(order.clone()));
    }
}

fn list_pointers(value: &Value, at: &str, pointers: &mut Vec<String>) {
    pointers.push(at.to_owned());
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                list_pointers(element, &format!("{at}/{index}"), pointers);
            }
        }
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(key, it)| list_pointers(it, &format!("{at}/{key}"), pointers));
        }
        _ => {}
    }
}

fn with(change: fn(&mut Value)) -> Value {
    let mut order = plain_order();
    change(&mut order);
    order_message(order)
}

#[test]
fn transactions_and_discounts_can_be_anything() {
    check(&with(|order| order["transactions"] = json!([null, 1, { "id": "T1" }])));
    check(&with(|order| order["discounts"] = json!(["SPRING", [true]])));
}

#[test]
fn schema_and_reader_agree_on_alternative_identifiers() {
    check(&with(|_| {}));
    check(&with(|order| order["items"][0]["sku"] = json!("")));
    check(&with(|order| order["items"][0]["upc"] = json!("")));
    check(&with(|order| order["customer"] = json!({ "identifier": "", "email": "a@b.example" })));
    check(&with(|order| order["customer"] = json!({ "identifier": "", "email": null })));
    check(&with(|order| order["customer"] = json!(null)));
    check(&with(|order| order["the service"] = json!(null)));
    check(&with(|order| order["the service"] = json!({ "email": "a@b.example" })));
    check(&with(|order| {
        order["the service"] = json!({ "email": "a@b.example" });
        order["customer"] = json!(null);
    }));
}

#[test]
fn the_event_conforms_to_its_schema() {
    let validator = validator(&stored_schema());
    for order in sample_orders(3).take(50) {
        let event = OrderStored { merchant: "acme".parse().unwrap(), order, is_reset: false };
        let written = json!(event);
        assert!(validator.is_valid(&written));
        assert_eq!(serde_json::from_value::<OrderStored>(written).unwrap(), event);
    }
}
