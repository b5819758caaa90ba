//! Saves a changed return, enqueues the RMA message for the merchant and adds the timeline entry.
//! RMA messages are enqueued only here, so that the merchant receives each change exactly once.

use delivery::{Deliveries, NewMessage};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::message_kind::MessageKind;
use domain::returns::{Change, Rma, ServiceEvent};
use platform::Timestamp;
use platform::database::DatabaseError;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::store::timeline::NewEntry;
use crate::store::{self, discrepancies, timeline};

/// Why a return changed.
#[derive(Debug, Clone)]
pub(crate) struct Cause<'a> {
    /// The client, or the type of another service's event.
    pub(crate) actor: &'a str,
    /// The request or report; names the timeline entry of a change without a message.
    pub(crate) action: &'a str,
    /// A JSON object with details for the timeline.
    pub(crate) detail: Value,
}

/// Saves and announces a changed return. A report that came too late for every unit only adds a
/// timeline entry.
pub(crate) async fn record(
    conn: &mut AsyncPgConnection,
    deliveries: &Deliveries,
    merchant: &MerchantId,
    rma: &Rma,
    change: &Change,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    if change.is_empty() && change.late.is_empty() {
        return Ok(());
    }
    if !change.is_empty() {
        store::returns::save(conn, merchant, rma).await?;
    }
    announce(conn, deliveries, merchant, rma, change, cause, now).await
}

/// Enqueues the message for the merchant and adds the timeline entry.
pub(crate) async fn announce(
    conn: &mut AsyncPgConnection,
    deliveries: &Deliveries,
    merchant: &MerchantId,
    rma: &Rma,
    change: &Change,
    Cause { actor, action, detail }: Cause<'_>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let delivery = match change.event {
        Some(event) => Some(enqueue_message(conn, deliveries, merchant, rma, event, now).await?),
        None => None,
    };
    let mut all = json!({ "cause": action });
    if let (Some(all), Value::Object(detail)) = (all.as_object_mut(), detail) {
        all.extend(detail);
        for (name, units) in [("units", &change.units), ("late", &change.late)] {
            if !units.is_empty() {
                all.insert(name.to_owned(), json!(units));
            }
        }
    }
    let event = change.event.map_or(action, |event| event.as_str());
    let entry = NewEntry { actor, event, detail: all, delivery };
    timeline::add(conn, merchant, &rma.rma_identifier, &entry, now).await?;
    discrepancies::record(conn, merchant, &change.discrepancies, now).await
}

async fn enqueue_message(
    conn: &mut AsyncPgConnection,
    deliveries: &Deliveries,
    merchant: &MerchantId,
    rma: &Rma,
    event: ServiceEvent,
    now: Timestamp,
) -> Result<Uuid, DatabaseError> {
    let body = serde_json::to_vec(&rma.message())
        .map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
    let message = NewMessage {
        merchant: merchant.clone(),
        kind: MessageKind::Rma,
        ordering_key: Some(format!("rma:{}", rma.rma_identifier)),
        event: event.as_str().to_owned(),
        body: body.into(),
    };
    let ids = deliveries.append(conn, now, &[message]).await?;
    Ok(ids.into_iter().next().unwrap_or_default())
}
