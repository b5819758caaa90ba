//! Publishing orders: validate a message, queue it for the writer and report the result of each order.

use std::sync::Arc;

use api::orders::TimeSpan;
use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::json::{Document, FieldError, JsonValue, ValidationError};
use domain::merchant::Merchant;
use domain::order::{
    OrderMessage, OrderOutcome, OrderPolicy, OrderSnapshot, OrderStored, OrderStoredInBulk,
};
use platform::http::JsonSource;
use platform::{ErrorKind, Failure, Problem};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::App;
use crate::merchant_activity::MerchantActivity;
use crate::rejected_order::rejections;
use crate::write_batch::{Publication, Published};
use crate::writer::{self, PublishError};

/// The largest number of units in a message whose orders do not go to the queue for bulk.
const MAX_UNITS: i64 = 50;

/// The result of each order of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PublishedOrders {
    #[schema(example = "2 orders: 1 stored, 1 unchanged")]
    message: String,
    /// In the order of the message.
    orders: Vec<PublishedOrder>,
    /// Amounts that do not add up, for example refunds above the amount paid, and order discounts that
    /// no line carries. The orders are stored anyway.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<FieldError>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PublishedOrder {
    identifier: String,
    result: OrderOutcome,
}

/// Stores the orders of a message.
pub(crate) async fn publish(
    app: Arc<App>,
    merchant: &Merchant,
    source: JsonSource,
) -> Result<PublishedOrders, Problem> {
    let received_at = app.clock.now();
    let policy = OrderPolicy {
        strict_amounts: merchant.settings.strict_amounts,
        strict_refund_dates: merchant.settings.strict_refund_dates,
    };
    let merchant = merchant.identifier.clone();
    let message =
        Message { app: Arc::clone(&app), merchant: merchant.clone(), policy, received_at };
    let read = move |document: &Document, bytes: &[u8]| message.read(document, bytes);
    let (read, memory) = source.read_with(read).await?;
    let ReadOrders { orders, identifiers, created, warnings } = read?;
    let publication =
        Publication { merchant: merchant.clone(), policy, received_at, orders, _memory: memory };
    let stored = writer::store(&app.job_queue, &app.pool, &app.outbox, publication);
    let (publication, outcomes) = stored.await?;
    drop(publication);
    let outcomes = outcomes.inspect_err(|error| {
        if let PublishError::Refunds(invalid) = error {
            let identifiers: Vec<_> = identifiers.iter().map(|it| Some(it.as_str())).collect();
            record_rejected(&app, &merchant, &identifiers, invalid, received_at);
        }
    })?;
    if let Some(created) = created {
        let activity = MerchantActivity::accepted(received_at, created, &outcomes);
        app.activity.record(&merchant, activity);
    }
    let message = summary(&outcomes);
    let orders = identifiers.into_iter().zip(outcomes);
    let orders = orders.map(|(identifier, result)| PublishedOrder { identifier, result });
    Ok(PublishedOrders { message, orders: orders.collect(), warnings })
}

/// A message of a merchant that is read, which may take long.
struct Message {
    app: Arc<App>,
    merchant: MerchantId,
    policy: OrderPolicy,
    received_at: DateTime<Utc>,
}

/// The orders of a message, with all that is kept of them.
struct ReadOrders {
    orders: Vec<Published>,
    identifiers: Vec<String>,
    created: Option<TimeSpan>,
    warnings: Vec<FieldError>,
}

impl Message {
    fn read(&self, document: &Document, bytes: &[u8]) -> Result<ReadOrders, Problem> {
        let Self { app, merchant, policy, received_at } = self;
        let OrderMessage { snapshots, warnings } =
            OrderMessage::read(document, *policy, *received_at).inspect_err(|invalid| {
                let identifiers = order_identifiers(document);
                record_rejected(app, merchant, &identifiers, invalid, *received_at);
            })?;
        let identifiers = snapshots.iter().map(|it| it.order.identifier.clone()).collect();
        let created = TimeSpan::of(snapshots.iter().map(|it| it.order.created_at));
        let orders = serialize(app, merchant, snapshots, bytes, *received_at)?;
        Ok(ReadOrders { orders, identifiers, created, warnings })
    }
}

/// The orders with their JSON text and their events.
fn serialize(
    app: &App,
    merchant: &MerchantId,
    snapshots: Vec<OrderSnapshot>,
    message: &[u8],
    received_at: DateTime<Utc>,
) -> Result<Vec<Published>, Problem> {
    let units: i64 =
        snapshots.iter().flat_map(|it| &it.order.items).map(|line| line.quantity).sum();
    let in_bulk = units > MAX_UNITS;
    let mut orders = Vec::with_capacity(snapshots.len());
    for (snapshot, document) in snapshots.into_iter().zip(order_documents(message)?) {
        let stored =
            OrderStored { merchant: merchant.clone(), order: snapshot.order, is_reset: false };
        let stored = OrderStoredInBulk(stored);
        let event = if in_bulk {
            app.outbox.serialize(received_at, &stored)?
        } else {
            app.outbox.serialize(received_at, &stored.0)?
        };
        let snapshot = OrderSnapshot { order: stored.0.order, ..snapshot };
        orders.push(Published { snapshot, document: document.get().to_owned(), event });
    }
    Ok(orders)
}

fn record_rejected(
    app: &App,
    merchant: &MerchantId,
    identifiers: &[Option<&str>],
    invalid: &ValidationError,
    at: DateTime<Utc>,
) {
    let rejected = rejections(identifiers, invalid, at);
    let orders = identifiers.len().max(1);
    app.activity.record(merchant, MerchantActivity::rejected(at, orders, rejected));
}

/// The identifiers of the orders in an invalid message, as far as they can be read.
fn order_identifiers(document: &Document) -> Vec<Option<&str>> {
    let orders = OrderMessage::documents(document.value());
    orders.map(|order| order.get("identifier").and_then(JsonValue::as_str)).collect()
}

/// The message with the JSON text of each order unchanged.
#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow)]
    returns_portal_order: RawOrders<'a>,
}

#[derive(Deserialize)]
struct RawOrders<'a> {
    #[serde(borrow)]
    orders: Vec<&'a RawValue>,
}

#[derive(Debug, thiserror::Error)]
#[error("a valid message could not be split into its orders")]
struct InvalidRawMessage(#[from] serde_json::Error);

impl Failure for InvalidRawMessage {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Internal
    }
}

fn order_documents(message: &[u8]) -> Result<Vec<&RawValue>, InvalidRawMessage> {
    Ok(serde_json::from_slice::<RawMessage<'_>>(message)?.returns_portal_order.orders)
}

fn summary(outcomes: &[OrderOutcome]) -> String {
    let kinds = [
        (OrderOutcome::Stored, "stored"),
        (OrderOutcome::Unchanged, "unchanged"),
        (OrderOutcome::Stale, "stale"),
    ];
    let counted: Vec<_> = kinds
        .into_iter()
        .map(|(kind, word)| (outcomes.iter().filter(|it| **it == kind).count(), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let orders = if outcomes.len() == 1 { "order" } else { "orders" };
    format!("{} {orders}: {}", outcomes.len(), counted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_orders_by_result() {
        use OrderOutcome::{Stale, Stored, Unchanged};
        assert_eq!(summary(&[Stored]), "1 order: 1 stored");
        assert_eq!(
            summary(&[Stale, Stored, Unchanged, Stored]),
            "4 orders: 2 stored, 1 unchanged, 1 stale"
        );
    }
}
