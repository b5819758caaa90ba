//! Deliveries that a newer message superseded, which are replayed only with `--force`.

use domain::message_kind::MessageKind;
use serde_json::{Value, json};

use crate::api_client::ApiClient;
use crate::output::text_at;

/// Adds `superseded_by` to a dead delivery: the ID of a newer message of its ordering key that was
/// delivered.
pub(super) async fn mark_superseded(
    service: &ApiClient,
    mut delivery: Value,
) -> anyhow::Result<Value> {
    if delivery.get("state") != Some(&json!("dead")) {
        return Ok(delivery);
    }
    let newer = superseded_by(service, &delivery).await?;
    if let (Some(newer), Some(delivery)) = (newer, delivery.as_object_mut()) {
        delivery.insert("superseded_by".to_owned(), newer.into());
    }
    Ok(delivery)
}

/// The ID of a newer message of the ordering key that was delivered. Messages without the complete state of their
/// subject are never superseded.
pub(super) async fn superseded_by(
    service: &ApiClient,
    delivery: &Value,
) -> anyhow::Result<Option<String>> {
    let kind: Option<MessageKind> = text_at(delivery, "/kind").parse().ok();
    let is_complete = kind.is_some_and(MessageKind::has_complete_state);
    if !is_complete || text_at(delivery, "/ordering_key") == "-" {
        return Ok(None);
    }
    let delivered = [
        ("merchant", text_at(delivery, "/merchant")),
        ("ordering_key", text_at(delivery, "/ordering_key")),
        ("state", "delivered".to_owned()),
    ];
    let newest = service.list(&["v1", "deliveries"], "deliveries", &delivered, 1).await?;
    let newest = newest.pointer("/deliveries/0").unwrap_or(&Value::Null);
    Ok((sequence(newest) > sequence(delivery)).then(|| text_at(newest, "/id")))
}

fn sequence(delivery: &Value) -> Option<i64> {
    delivery.get("sequence").and_then(Value::as_i64)
}

/// Names the flag for a delivery that is superseded.
pub(super) fn suggest_force(error: anyhow::Error) -> anyhow::Error {
    if error.to_string().contains("is superseded") {
        error.context("the message was not sent again; --force sends it anyway")
    } else {
        error
    }
}
