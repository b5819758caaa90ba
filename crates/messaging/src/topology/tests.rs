//! What an operator gives the broker (`deploy/rabbitmq`) and what the code declares are the same.

use std::collections::BTreeMap;

use domain::message_kind::MessageKind;
use lapin::types::{AMQPValue, FieldTable};
use regex::Regex;
use serde_json::{Value, json};

use super::*;

mod asyncapi;

/// Whose each event is.
const SAID_BY: [(&str, &[&str]); 8] = [
    ("merchant.changed.v1", &["auth"]),
    ("token.revoked.v1", &["auth"]),
    ("order.stored.v1", &["order-intake"]),
    ("return.confirmed.v1", &["rma-engine"]),
    ("exchange.placed.v1", &["exchange"]),
    ("exchange.failed.v1", &["exchange"]),
    ("unit.received.v1", &["warehouse-notifier"]),
    ("delivery.dead.v1", &["exchange", "rma-engine", "warehouse-notifier"]),
];

fn definitions() -> Value {
    serde_json::from_str(include_str!("../../../../deploy/rabbitmq/definitions.json")).unwrap()
}

/// The rows of a section, by what `key` makes of them.
fn rows(section: &str, key: impl Fn(&Value) -> String) -> BTreeMap<String, Value> {
    let all = definitions();
    all[section].as_array().unwrap().iter().map(|row| (key(row), row.clone())).collect()
}

fn text(row: &Value, field: &str) -> String {
    row[field].as_str().unwrap().to_owned()
}

fn arguments(table: &FieldTable) -> Value {
    let plain = |value: &AMQPValue| match value {
        AMQPValue::LongString(text) => json!(text.to_string()),
        AMQPValue::LongInt(number) => json!(number),
        other => panic!("{other:?} has no place in the definitions yet"),
    };
    table.inner().iter().map(|(name, value)| (name.to_string(), plain(value))).collect()
}

#[test]
fn the_queues_are_those_of_the_code() {
    let topology = Topology::backhaul("");
    let mut declared = BTreeMap::new();
    for queue in topology.queues() {
        declared.insert(queue.name.clone(), arguments(&live_queue(queue)));
        declared.insert(queue.dead_letter_queue(), arguments(&quorum()));
    }
    let defined: BTreeMap<_, _> = rows("queues", |row| text(row, "name"))
        .into_iter()
        .map(|(name, row)| {
            assert_eq!((&row["durable"], &row["auto_delete"]), (&json!(true), &json!(false)));
            (name, row["arguments"].clone())
        })
        .collect();
    assert_eq!(defined, declared);
}

#[test]
fn the_exchange_and_the_bindings_are_those_of_the_code() {
    let topology = Topology::backhaul("");
    let exchanges = rows("exchanges", |row| text(row, "name"));
    assert_eq!(exchanges.keys().collect::<Vec<_>>(), [&topology.events_exchange().0]);
    assert_eq!(exchanges[&topology.events_exchange().0]["type"], "topic");
    let bound = rows("bindings", |row| text(row, "destination"))
        .into_iter()
        .map(|(queue, row)| (queue, vec![text(&row, "routing_key")]))
        .collect::<BTreeMap<_, _>>();
    let declared: BTreeMap<_, _> = topology
        .queues()
        .iter()
        .filter(|queue| !queue.bindings.is_empty())
        .map(|queue| {
            let keys = queue.bindings.iter().map(|key| (*key).to_owned()).collect();
            (queue.name.clone(), keys)
        })
        .collect();
    assert_eq!(bound, declared);
}

/// Which service takes messages from a queue; nobody does from the operators' own.
fn reader(queue: &str) -> Option<&str> {
    let kind = MessageKind::ALL.into_iter().find(|kind| kind.queue() == queue);
    match kind {
        Some(MessageKind::Rma) => Some("rma-engine"),
        Some(MessageKind::ExchangeOrder) => Some("exchange"),
        Some(_) => Some("warehouse-notifier"),
        None => SUBSCRIPTIONS
            .iter()
            .map(|(service, _)| *service)
            .find(|service| *service != "operators" && queue.starts_with(&format!("{service}."))),
    }
}

#[test]
fn each_queue_is_read_by_its_own_service_and_declared_by_none() {
    let rights = rows("permissions", |row| text(row, "user"));
    for (user, row) in rights.iter().filter(|(user, _)| *user != "operator") {
        assert_eq!(row["configure"], "^$", "{user} need not declare anything");
        let read = Regex::new(row["read"].as_str().unwrap()).unwrap();
        for queue in Topology::backhaul("").queues() {
            let own = reader(&queue.name) == Some(user);
            assert_eq!(read.is_match(&queue.name), own, "{user} reads {}", queue.name);
            assert_eq!(
                read.is_match(&queue.dead_letter_queue()),
                own,
                "{user} reads {}",
                queue.dead_letter_queue()
            );
        }
    }
}

#[test]
fn each_event_is_said_by_those_it_belongs_to() {
    let topology = Topology::backhaul("");
    let rights = rows("topic_permissions", |row| text(row, "user"));
    for key in topology.queues().iter().flat_map(|queue| &queue.bindings) {
        let may = |row: &Value| Regex::new(row["write"].as_str().unwrap()).unwrap().is_match(key);
        let sayers: Vec<_> =
            rights.iter().filter(|(_, row)| may(row)).map(|(user, _)| user.as_str()).collect();
        let (_, known) = SAID_BY.iter().find(|(event, _)| event == key).expect(key);
        assert_eq!(sayers, *known, "{key}");
    }
}

#[test]
fn policies_lift_the_limit_of_dead_letters_and_bound_the_rest() {
    let policies = rows("policies", |row| text(row, "name"));
    // The pattern that bounds looks ahead, which this library cannot; the broker test covers it.
    let lifted = Regex::new(policies["dead-letters-outlive-looking"]["pattern"].as_str().unwrap());
    let lifted = lifted.unwrap();
    for queue in Topology::backhaul("").queues() {
        assert!(lifted.is_match(&queue.dead_letter_queue()) && !lifted.is_match(&queue.name));
    }
}

#[test]
fn nobody_can_log_in_with_what_is_public() {
    for (name, row) in rows("users", |row| text(row, "name")) {
        assert_eq!(row["password_hash"], "", "{name}");
        assert!(row.get("password").is_none(), "{name}");
    }
}
