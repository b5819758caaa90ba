//! Receipts: units that arrive at a warehouse, checked against the ASNs of their merchant.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use delivery::NewMessage;
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::access::MerchantId;
use domain::message_kind::MessageKind;
use domain::warehouse::{InventoryReceipt, ReceiptBatch};
use futures_util::future::join;
use platform::http::PageLimit;
use platform::idempotency;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::App;
use crate::error::Error;
use crate::expected_units::complete;
use crate::request::Request;
use crate::store::receipts::{self as store, NewReceipt, StoredReceipt};
use crate::store::{new_id, record_keys as keys_store};

/// The receipts of a request.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ReceivedUnits {
    #[schema(example = "2 units received")]
    message: String,
    /// In the order of the request.
    receipts: Vec<ReceiptView>,
}

impl ReceivedUnits {
    pub(crate) fn new(receipts: Vec<ReceiptView>) -> Self {
        let units = if receipts.len() == 1 { "unit" } else { "units" };
        Self { message: format!("{} {units} received", receipts.len()), receipts }
    }
}

/// The first receipt of a unit, or its first rejection if it was not received.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct ReceiptView {
    id: Uuid,
    asn_number: String,
    line_identifier: String,
    unit_identifier: String,
    received_at: DateTime<Utc>,
}

impl ReceiptView {
    pub(crate) fn new(new: &NewReceipt, received_at: DateTime<Utc>) -> Self {
        Self {
            id: new.id,
            asn_number: new.asn_number.clone(),
            line_identifier: new.line_identifier.clone(),
            unit_identifier: new.unit_identifier.clone(),
            received_at,
        }
    }
}

impl From<StoredReceipt> for ReceiptView {
    fn from(stored: StoredReceipt) -> Self {
        let StoredReceipt { id, asn_number, line_identifier, unit_identifier, .. } = stored;
        let received_at = stored.received_at;
        Self { id, asn_number, line_identifier, unit_identifier, received_at }
    }
}

/// A receipt with its message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptDetails {
    #[schema(value_type = MerchantId)]
    merchant: String,
    id: Uuid,
    received_at: DateTime<Utc>,
    /// The message to the merchant.
    message: InventoryReceipt,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptPage {
    /// Newest first.
    receipts: Vec<ReceiptDetails>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl TryFrom<StoredReceipt> for ReceiptDetails {
    type Error = Error;

    fn try_from(stored: StoredReceipt) -> Result<Self, Error> {
        let StoredReceipt { merchant, id, received_at, message, .. } = stored;
        Ok(Self { merchant, id, received_at, message: serde_json::from_str(&message)? })
    }
}

/// Stores receipts and enqueues a message for each unit that is new.
pub(crate) async fn receive(
    app: &App,
    request: Request<'_>,
    receipts: ReceiptBatch,
) -> Result<String, Error> {
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        idempotency::run(conn, request.key.as_ref(), request.at, async |conn| {
            let (completed, keys) = complete(conn, &request, receipts).await?;
            let mut new = Vec::with_capacity(completed.len());
            for receipt in &completed {
                new.push(new_receipt(receipt, new_id(request.at))?);
            }
            let stored = store::insert(conn, request.merchant, &new, request.at).await?;
            keys_store::insert(conn, request.merchant, &keys, request.at).await?;
            enqueue_messages(app, conn, &request, &completed, &new, &stored).await?;
            received_units(conn, &request, &new, &stored).await
        })
        .await
    })
    .await
}

fn new_receipt(receipt: &InventoryReceipt, id: Uuid) -> Result<NewReceipt, Error> {
    let unit = receipt.unit_identifier.as_ref().map(ToString::to_string);
    Ok(NewReceipt {
        id,
        asn_number: receipt.asn_number.to_string(),
        line_identifier: receipt.line_identifier.to_string(),
        unit_identifier: unit.unwrap_or_default(),
        message: serde_json::to_string(receipt)?,
        rejected: receipt.reject_reason.is_some(),
    })
}

/// Enqueues a message for each new unit, and publishes an event for each that belongs to an RMA.
async fn enqueue_messages(
    app: &App,
    conn: &AsyncPgConnection,
    request: &Request<'_>,
    completed: &[InventoryReceipt],
    new: &[NewReceipt],
    stored: &HashSet<Uuid>,
) -> Result<(), Error> {
    let (mut messages, mut events) = (Vec::with_capacity(stored.len()), Vec::new());
    let new_units = completed.iter().zip(new).filter(|(_, new)| stored.contains(&new.id));
    for (receipt, new) in new_units {
        let event =
            if new.rejected { "inventory_receipt.rejected" } else { "inventory_receipt.received" };
        messages.push(NewMessage {
            merchant: request.merchant.clone(),
            kind: MessageKind::InventoryReceipt,
            // The prefix differs from that of outbound shipments, which may have the same number.
            ordering_key: Some(format!("inbound_asn:{}", new.asn_number)),
            event: event.to_owned(),
            body: new.message.clone().into(),
        });
        events.extend(receipt.unit_received(request.merchant, new.id, request.at));
    }
    // Both statements are sent at once. The ordering keys are locked last, because other receipts wait for them.
    let (published, enqueued) = join(
        app.outbox.append(conn, request.at, events),
        app.deliveries.append(conn, request.at, &messages),
    )
    .await;
    published?;
    enqueued?;
    Ok(())
}

/// Returns one view for each unit in the order of the request. A unit that was stored before gets its
/// first receipt.
async fn received_units(
    conn: &mut AsyncPgConnection,
    request: &Request<'_>,
    new: &[NewReceipt],
    stored: &HashSet<Uuid>,
) -> Result<ReceivedUnits, Error> {
    let known: Vec<_> = new
        .iter()
        .filter(|new| !stored.contains(&new.id))
        .map(|new| (new.asn_number.as_str(), new.unit_identifier.as_str()))
        .collect();
    let mut first_receipts = HashMap::new();
    if !known.is_empty() {
        for receipt in store::find(conn, request.merchant, &known).await? {
            let key = (receipt.asn_number.clone(), receipt.unit_identifier.clone());
            first_receipts.insert(key, ReceiptView::from(receipt));
        }
    }
    let view = |new: &NewReceipt| {
        let key = (new.asn_number.clone(), new.unit_identifier.clone());
        let first = first_receipts.get(&key).cloned();
        first.unwrap_or_else(|| ReceiptView::new(new, request.at))
    };
    Ok(ReceivedUnits::new(new.iter().map(view).collect()))
}

/// Lists receipts, newest first: of all merchants, of one merchant, or of one of its ASNs.
pub(crate) async fn list(
    app: &App,
    merchant: Option<&MerchantId>,
    asn_number: Option<&str>,
    after: Option<Uuid>,
    limit: PageLimit,
) -> Result<ReceiptPage, Error> {
    let mut conn = app.pool.reader().await?;
    let mut found = store::page(&mut conn, merchant, asn_number, after, limit.rows()).await?;
    let next = limit.next(&mut found, |stored| stored.id.to_string());
    let receipts: Result<_, Error> = found.into_iter().map(ReceiptDetails::try_from).collect();
    Ok(ReceiptPage { receipts: receipts?, next })
}
