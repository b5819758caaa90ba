//! `proto-schemas/asyncapi.yaml`: the events that each service publishes and consumes.

use std::path::Path;

use chrono::DateTime;
use domain::message_kind::MessageKind;
use serde_json::{Map, Value, json};
use testkit::check_contract;
use uuid::Uuid;

use super::super::{EVENTS_EXCHANGE, Topology};
use super::{PUBLISHERS, consumer};
use crate::envelope::Envelope;

/// Version of the AMQP bindings.
const BINDING_VERSION: &str = "0.3.0";

const DESCRIPTION: &str = "\
Events are CloudEvents in structured JSON. A service publishes an event to one exchange, with the event's \
type as the routing key. Each service that consumes an event has a queue for it. Messages to merchants \
have one queue per message kind and are published to it by name. Undeliverable messages go to \
`<queue>.dead`. The setting `broker.namespace` prefixes all of these names.";

#[test]
fn the_asyncapi_document_is_up_to_date() {
    check_contract("asyncapi.yaml", &yaml_serde::to_string(&document()).unwrap());
}

fn document() -> Value {
    let (mut channels, mut messages, mut operations) = (Map::new(), Map::new(), Map::new());
    for (event, services) in PUBLISHERS {
        messages.insert(event.to_owned(), event_message(event));
        channels.insert(event.to_owned(), routed(event));
        for service in services {
            operations.insert(format!("{service}.publishes.{event}"), operation("send", event));
        }
    }
    for kind in MessageKind::ALL {
        let queue = kind.queue();
        let payload = file(&format!("messages/{kind}.schema.json"));
        messages.insert(queue.to_owned(), json!({ "payload": payload }));
        let service = consumer(queue).unwrap();
        operations.insert(format!("{service}.publishes.{queue}"), operation("send", queue));
    }
    for queue in Topology::backhaul("").queues() {
        let message = queue.bindings.first().copied().unwrap_or(&queue.name);
        channels.insert(queue.name.clone(), queued(&queue.name, message));
        if let Some(service) = consumer(&queue.name) {
            let id = format!("{service}.consumes.{message}");
            operations.insert(id, operation("receive", &queue.name));
        }
    }
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Backhaul events and messages",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0" },
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": { "messages": messages, "schemas": { "CloudEvent": cloud_event() } },
    })
}

fn routed(event: &str) -> Value {
    let exchange =
        json!({ "name": EVENTS_EXCHANGE, "type": "topic", "durable": true, "autoDelete": false });
    let amqp =
        json!({ "is": "routingKey", "exchange": exchange, "bindingVersion": BINDING_VERSION });
    channel(event, event, &amqp)
}

fn queued(queue: &str, message: &str) -> Value {
    let queue_object =
        json!({ "name": queue, "durable": true, "exclusive": false, "autoDelete": false });
    channel(
        queue,
        message,
        &json!({ "is": "queue", "queue": queue_object, "bindingVersion": BINDING_VERSION }),
    )
}

fn channel(address: &str, message: &str, amqp: &Value) -> Value {
    let message = json!({ message: { "$ref": format!("#/components/messages/{message}") } });
    json!({ "address": address, "messages": message, "bindings": { "amqp": amqp } })
}

fn operation(action: &str, channel: &str) -> Value {
    json!({ "action": action, "channel": { "$ref": format!("#/channels/{channel}") } })
}

fn event_message(event: &str) -> Value {
    let name = event.trim_end_matches(".v1").replace('.', "-");
    let data = file(&format!("events/{name}.schema.json"));
    let envelope = json!({ "$ref": "#/components/schemas/CloudEvent" });
    let event_schema = json!({ "properties": { "type": { "const": event }, "data": data } });
    json!({
        "contentType": "application/cloudevents+json",
        "payload": { "allOf": [envelope, event_schema] },
    })
}

/// A reference to an existing schema file.
fn file(name: &str) -> Value {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto-schemas"));
    assert!(folder.join(name).exists(), "{name} is missing");
    json!({ "$ref": name })
}

/// Schema of the envelope of every event.
fn cloud_event() -> Value {
    let envelope = json!(Envelope {
        specversion: String::new(),
        id: Uuid::nil(),
        source: String::new(),
        event_type: String::new(),
        subject: String::new(),
        time: DateTime::UNIX_EPOCH,
        datacontenttype: String::new(),
        sequence: Some(String::new()),
        traceparent: Some(String::new()),
        data: (),
    });
    let members = envelope.as_object().unwrap().keys();
    let properties: Map<_, _> = members
        .clone()
        .map(|name| {
            let schema = match name.as_str() {
                "data" => json!({}),
                "id" => json!({ "type": "string", "format": "uuid" }),
                "time" => json!({ "type": "string", "format": "date-time" }),
                _ => json!({ "type": "string" }),
            };
            (name.clone(), schema)
        })
        .collect();
    let required: Vec<_> =
        members.filter(|name| !["sequence", "traceparent"].contains(&name.as_str())).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}
