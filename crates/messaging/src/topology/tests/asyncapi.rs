//! `proto-schemas/asyncapi.yaml`: the events that each service publishes and consumes.

use std::path::Path;

use chrono::DateTime;
use domain::message_kind::MessageKind;
use serde_json::{Map, Value, json};
use testkit::check_contract;
use uuid::Uuid;

use super::super::{EVENTS_EXCHANGE, PUBLISHERS, Topology};
use super::consumer;
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
    let mut channels = Map::new();
    let mut messages = Map::new();
    let mut operations = Map::new();
    for (event, services) in PUBLISHERS {
        messages.insert(event.to_owned(), event_message(event));
        channels.insert(event.to_owned(), routed(event));
        for service in services {
            let about = format!("{service} publishes `{event}`.");
            let id = format!("{service}.publishes.{event}");
            operations.insert(id, operation("send", event, &about));
        }
    }
    for kind in MessageKind::ALL {
        let queue = kind.queue();
        let payload = file(&format!("messages/{kind}.schema.json"));
        messages.insert(queue.to_owned(), json!({ "payload": payload }));
        let service = consumer(queue).unwrap();
        let about = format!("{service} queues a message of the kind `{kind}` that is due.");
        let id = format!("{service}.publishes.{queue}");
        operations.insert(id, operation("send", queue, &about));
    }
    for queue in Topology::backhaul("").queues() {
        let message = queue.bindings.first().copied().unwrap_or(&queue.name);
        channels.insert(queue.name.clone(), queued(&queue.name, message));
        if let Some(service) = consumer(&queue.name) {
            let id = format!("{service}.consumes.{message}");
            let about = format!("{service} consumes `{message}`.");
            operations.insert(id, operation("receive", &queue.name, &about));
        }
    }
    json!({
        "asyncapi": "3.1.0",
        "info": {
            "title": "Backhaul events and messages",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0" },
            "contact": { "name": "The operators of this installation" },
            "tags": [
                { "name": "events", "description": "Events from one service to the others" },
                { "name": "messages", "description": "Messages to merchants that are due" },
            ],
        },
        "servers": { "broker": broker() },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {
            "messages": messages,
            "schemas": { "CloudEvent": cloud_event() },
            "securitySchemes": { "password": {
                "type": "userPassword",
                "description": "The user of the service in RabbitMQ, from the setting `broker.url`",
            } },
        },
    })
}

fn broker() -> Value {
    json!({
        "host": "{host}:5671",
        "protocol": "amqps",
        "protocolVersion": "0.9.1",
        "description": "RabbitMQ. The setting `broker.url` has its address.",
        "variables": { "host": { "default": "localhost", "description": "The host of the broker" } },
        "security": [password()],
    })
}

fn password() -> Value {
    json!({ "$ref": "#/components/securitySchemes/password" })
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

fn operation(action: &str, channel: &str, description: &str) -> Value {
    let tag = if channel.starts_with("notify.") { "messages" } else { "events" };
    json!({
        "action": action,
        "channel": { "$ref": format!("#/channels/{channel}") },
        "description": description,
        "tags": [{ "name": tag }],
        "security": [password()],
    })
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
        sequence: Some(0),
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
