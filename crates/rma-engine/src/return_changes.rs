//! Saves a changed return, enqueues the RMA message for the merchant and adds the timeline entry.
//! RMA messages are enqueued only here, so that the merchant receives each change exactly once.

use delivery::{Deliveries, NewMessage};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::message_kind::MessageKind;
use domain::returns::{Change, Rma, ServiceEvent};
use futures_util::future::join;
use platform::Timestamp;
use platform::database::DatabaseError;
use serde_json::{Value, json};

use crate::store::returns::InsertError;
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

/// Stores a new return, enqueues its first message and starts its timeline.
pub(crate) async fn record_new(
    conn: &AsyncPgConnection,
    deliveries: &Deliveries,
    rma: &Rma,
    customer_email: Option<&str>,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<(), InsertError> {
    let change = Change {
        event: Some(ServiceEvent::Created),
        units: rma.units.iter().map(|unit| unit.id.clone()).collect(),
        ..Change::default()
    };
    let message = message(&rma.merchant, rma, &change)?;
    let entry = new_entry(&rma.merchant, rma, &change, cause, now);
    // Both statements are sent at once and run in this order. If the first one fails, so does the second.
    let (stored, enqueued) = join(
        store::returns::insert(conn, rma, customer_email, &entry),
        enqueue(conn, deliveries, &entry, message.as_ref()),
    )
    .await;
    stored?;
    Ok(enqueued?)
}

/// Saves a changed return, enqueues its message and adds the timeline entry. A report that came too late
/// for every unit only adds a timeline entry.
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
    let message = message(merchant, rma, change)?;
    let entry = new_entry(merchant, rma, change, cause, now);
    // Both statements are sent at once and run in this order.
    let (saved, enqueued) =
        join(save(conn, rma, change, &entry), enqueue(conn, deliveries, &entry, message.as_ref()))
            .await;
    saved?;
    enqueued?;
    discrepancies::record(conn, merchant, &change.discrepancies, now).await
}

async fn save(
    conn: &AsyncPgConnection,
    rma: &Rma,
    change: &Change,
    entry: &NewEntry<'_>,
) -> Result<(), DatabaseError> {
    if change.is_empty() {
        timeline::add(conn, entry).await
    } else {
        store::returns::save(conn, rma, entry).await
    }
}

/// The message to the merchant about the change, if there is one.
fn message(
    merchant: &MerchantId,
    rma: &Rma,
    change: &Change,
) -> Result<Option<NewMessage>, DatabaseError> {
    let Some(event) = change.event else { return Ok(None) };
    let body = serde_json::to_vec(&rma.message())
        .map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
    Ok(Some(NewMessage {
        merchant: merchant.clone(),
        kind: MessageKind::Rma,
        ordering_key: Some(format!("rma:{}", rma.rma_identifier)),
        event: event.as_str().to_owned(),
        body: body.into(),
    }))
}

/// The timeline entry, with the id of the message if there is one.
fn new_entry<'a>(
    merchant: &'a MerchantId,
    rma: &'a Rma,
    change: &Change,
    Cause { actor, action, detail }: Cause<'a>,
    now: Timestamp,
) -> NewEntry<'a> {
    let mut all = json!({ "cause": action });
    if let (Some(all), Value::Object(detail)) = (all.as_object_mut(), detail) {
        all.extend(detail);
        for (name, units) in [("units", &change.units), ("late", &change.late)] {
            if !units.is_empty() {
                all.insert(name.to_owned(), json!(units));
            }
        }
    }
    NewEntry {
        merchant,
        rma_identifier: &rma.rma_identifier,
        at: now,
        actor,
        event: change.event.map_or(action, |event| event.as_str()),
        detail: all,
        delivery: change.event.map(|_| Deliveries::new_id(now)),
    }
}

/// Enqueues the message under the id that the timeline entry names.
async fn enqueue(
    conn: &AsyncPgConnection,
    deliveries: &Deliveries,
    entry: &NewEntry<'_>,
    message: Option<&NewMessage>,
) -> Result<(), DatabaseError> {
    match entry.delivery.zip(message) {
        Some((id, message)) => deliveries.append_one(conn, entry.at, id, message).await,
        None => Ok(()),
    }
}
