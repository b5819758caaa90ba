//! The definitions that an operator imports (`deploy/rabbitmq`) match the declared topology.

use std::collections::{BTreeMap, BTreeSet};

use domain::message_kind::MessageKind;
use lapin::types::{AMQPValue, FieldTable};
use regex::Regex;
use serde_json::{Value, json};

use super::*;

mod asyncapi;

fn definitions() -> Value {
    serde_json::from_str(include_str!("../../../../deploy/rabbitmq/definitions.json")).unwrap()
}

/// The rows of a section by `key`.
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
        other => panic!("{other:?} is not covered by this test"),
    };
    table.inner().iter().map(|(name, value)| (name.to_string(), plain(value))).collect()
}

#[test]
fn the_queues_match_the_declared_ones() {
    let topology = Topology::backhaul("");
    let waiting = topology.waiting_exchange().0;
    let mut declared = BTreeMap::from([(waiting, arguments(&waiting_arguments()))]);
    for queue in topology.queues() {
        declared.insert(queue.name.clone(), arguments(&queue_arguments(queue)));
        declared.insert(queue.dead_letter_queue(), arguments(&quorum_arguments()));
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
fn the_exchanges_and_the_bindings_match_the_declared_ones() {
    let topology = Topology::backhaul("");
    let waiting = topology.waiting_exchange().0;
    let exchanges = rows("exchanges", |row| text(row, "name"));
    assert_eq!(exchanges.keys().collect::<Vec<_>>(), [&topology.events_exchange().0, &waiting]);
    assert!(exchanges.values().all(|exchange| exchange["type"] == "topic"));
    let bound = rows("bindings", |row| text(row, "destination"))
        .into_iter()
        .map(|(queue, row)| (queue, vec![text(&row, "routing_key")]))
        .collect::<BTreeMap<_, _>>();
    let mut declared: BTreeMap<_, _> = topology
        .queues()
        .iter()
        .filter(|queue| !queue.bindings.is_empty())
        .map(|queue| {
            let keys = queue.bindings.iter().map(|key| (*key).to_owned()).collect();
            (queue.name.clone(), keys)
        })
        .collect();
    declared.insert(waiting, vec!["#".to_owned()]);
    assert_eq!(bound, declared);
}

/// The routing keys that each user may publish to an exchange.
fn topic_permissions(exchange: &str) -> BTreeMap<String, Value> {
    let permissions =
        rows("topic_permissions", |row| format!("{} {}", text(row, "exchange"), text(row, "user")));
    let of_exchange = |(key, row): (String, Value)| {
        Some((key.strip_prefix(exchange)?.trim_start().to_owned(), row))
    };
    permissions.into_iter().filter_map(of_exchange).collect()
}

/// The service that consumes a queue; `None` for the operators' queue.
fn consumer(queue: &str) -> Option<&str> {
    let kind = MessageKind::ALL.into_iter().find(|kind| kind.queue() == queue);
    match kind {
        Some(MessageKind::Rma | MessageKind::LabelRequest) => Some("rma-engine"),
        Some(MessageKind::ExchangeOrder) => Some("exchange"),
        Some(_) => Some("warehouse-notifier"),
        None => SUBSCRIPTIONS
            .iter()
            .map(|(service, _)| *service)
            .find(|service| *service != "operators" && queue.starts_with(&format!("{service}."))),
    }
}

#[test]
fn a_service_may_read_only_its_own_queues_and_declare_none() {
    let permissions = rows("permissions", |row| text(row, "user"));
    for (user, row) in permissions.iter().filter(|(user, _)| *user != "operator") {
        assert_eq!(row["configure"], "^$", "{user} may not declare");
        let read = Regex::new(row["read"].as_str().unwrap()).unwrap();
        for queue in Topology::backhaul("").queues() {
            let own = consumer(&queue.name) == Some(user);
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
fn each_event_may_be_published_only_by_its_services() {
    let topology = Topology::backhaul("");
    let permissions = topic_permissions("backhaul.events");
    for key in topology.queues().iter().flat_map(|queue| &queue.bindings) {
        let may = |row: &Value| Regex::new(row["write"].as_str().unwrap()).unwrap().is_match(key);
        let publishers: Vec<_> =
            permissions.iter().filter(|(_, row)| may(row)).map(|(user, _)| user.as_str()).collect();
        let (_, known) = PUBLISHERS.iter().find(|(event, _)| event == key).expect(key);
        assert_eq!(publishers, *known, "{key}");
    }
}

#[test]
fn a_service_may_set_aside_only_events_of_its_own_queues() {
    let permissions = topic_permissions("backhaul.waiting");
    for queue in Topology::backhaul("").queues().iter().filter(|queue| !queue.bindings.is_empty()) {
        let may =
            |row: &Value| Regex::new(row["write"].as_str().unwrap()).unwrap().is_match(&queue.name);
        let users: Vec<_> =
            permissions.iter().filter(|(_, row)| may(row)).map(|(user, _)| user.as_str()).collect();
        assert_eq!(users, Vec::from_iter(consumer(&queue.name)), "{}", queue.name);
    }
}

#[test]
fn a_service_declares_what_it_consumes_and_where_its_events_go() {
    let of = |service: &str, kinds: &[MessageKind]| -> BTreeSet<String> {
        let topology = Topology::of_service(service, kinds, "");
        topology.queues().iter().map(|queue| queue.name.clone()).collect()
    };
    let expected = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(
        of("order-intake", &[]),
        expected(&[
            "order-intake.merchant.changed.v1",
            "order-intake.shopper.erasure_confirmed.v1",
            "order-intake.token.revoked.v1",
            "rma-engine.order.stored.v1",
            "rma-engine.order.stored_in_bulk.v1",
            "rma-engine.shopper.erased.v1",
        ])
    );
    assert_eq!(
        of("exchange", &[MessageKind::ExchangeOrder]),
        expected(&[
            "exchange.exchange.renamed.v1",
            "exchange.merchant.changed.v1",
            "exchange.return.confirmed.v1",
            "exchange.returns.erased.v1",
            "exchange.token.revoked.v1",
            "notify.exchange-order",
            "operators.delivery.dead.v1",
            "order-intake.shopper.erasure_confirmed.v1",
            "rma-engine.exchange.failed.v1",
            "rma-engine.exchange.placed.v1",
            "rma-engine.exchange.undeliverable.v1",
        ])
    );
}

#[test]
fn the_services_together_declare_all_queues() {
    let rma = [MessageKind::Rma, MessageKind::LabelRequest];
    let exchange = [MessageKind::ExchangeOrder];
    let others: Vec<_> = MessageKind::ALL
        .into_iter()
        .filter(|kind| !rma.contains(kind) && !exchange.contains(kind))
        .collect();
    let services: [(&str, &[MessageKind]); 5] = [
        ("auth", &[]),
        ("order-intake", &[]),
        ("rma-engine", &rma),
        ("exchange", &exchange),
        ("warehouse-notifier", &others),
    ];
    let names = |topology: &Topology| -> BTreeSet<String> {
        topology.queues().iter().map(|queue| queue.name.clone()).collect()
    };
    let declared: BTreeSet<_> = services
        .iter()
        .flat_map(|(service, kinds)| names(&Topology::of_service(service, kinds, "")))
        .collect();
    assert_eq!(declared, names(&Topology::backhaul("")));
}

#[test]
fn the_policies_tell_dead_letter_queues_from_others() {
    let policies = rows("policies", |row| text(row, "name"));
    // The other policy's pattern has a look-ahead, which this library cannot parse. The test on a
    // real broker covers it.
    let pattern = Regex::new(policies["dead-letter-delivery-limit"]["pattern"].as_str().unwrap());
    let pattern = pattern.unwrap();
    for queue in Topology::backhaul("").queues() {
        assert!(pattern.is_match(&queue.dead_letter_queue()) && !pattern.is_match(&queue.name));
    }
}

#[test]
fn the_published_definitions_contain_no_password() {
    for (name, row) in rows("users", |row| text(row, "name")) {
        assert_eq!(row["password_hash"], "", "{name}");
        assert!(row.get("password").is_none(), "{name}");
    }
}
