//! Units that arrive, checked against what their merchant announced.

use std::collections::{BTreeSet, HashMap, HashSet};

use delivery::NewMessage;
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::json::{FieldError, ValidationError};
use domain::message_kind::MessageKind;
use domain::warehouse::{ExpectedUnit, InventoryReceipt, ReceiptBatch};
use uuid::Uuid;

use platform::idempotency;

use crate::App;
use crate::error::Error;
use crate::http::receipts::{ReceiptView, ReceivedUnits};
use crate::request::Request;
use crate::store::new_id;
use crate::store::receipts::{self as store, NewReceipt};

/// Stores units and tells the merchant of each, except those known before.
pub(crate) async fn receive(
    app: &App,
    request: Request<'_>,
    receipts: ReceiptBatch,
) -> Result<String, Error> {
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        idempotency::run(conn, request.key.as_ref(), request.at, async |conn| {
            let completed = complete(conn, &request, receipts).await?;
            let mut new = Vec::with_capacity(completed.len());
            for receipt in &completed {
                new.push(written(receipt, new_id(request.at))?);
            }
            let stored = store::insert(conn, request.merchant, &new, request.at).await?;
            tell(app, conn, &request, &completed, &new, &stored).await?;
            let answer = answer(conn, &request, &new, &stored).await?;
            Ok(answer)
        })
        .await
    })
    .await
}

/// Adds what the ASNs say; every unit whose ASN or line is unknown is a fault.
async fn complete(
    conn: &mut AsyncPgConnection,
    request: &Request<'_>,
    mut receipts: ReceiptBatch,
) -> Result<Vec<InventoryReceipt>, Error> {
    let each = receipts.receipts.iter();
    let keys: Vec<_> =
        each.map(|it| (it.asn_number.to_string(), it.line_identifier.to_string())).collect();
    let numbers: BTreeSet<_> = keys.iter().map(|(number, _)| number.as_str()).collect();
    let wanted = keys.iter().map(|(number, line)| (number.as_str(), line.as_str())).collect();
    let headers = store::headers(conn, request.merchant, &numbers).await?;
    let lines = store::lines(conn, request.merchant, &wanted).await?;
    let mut completed = std::mem::take(&mut receipts.receipts);
    let mut errors = Vec::new();
    for (place, (receipt, key)) in completed.iter_mut().zip(&keys).enumerate() {
        let path = |field: &str| receipts.path(place, field);
        let fault = match (headers.get(&key.0), lines.get(key)) {
            (Some(header), Some(line)) => {
                receipt.complete(&ExpectedUnit { header, line }, path).err()
            }
            (Some(_), None) => {
                let detail = format!("ASN {} has no line {}", key.0, key.1);
                Some(FieldError::invalid(path("line_identifier"), detail))
            }
            (None, _) => {
                let detail = format!("there is no ASN {}", key.0);
                Some(FieldError::invalid(path("asn_number"), detail))
            }
        };
        errors.extend(fault);
    }
    if errors.is_empty() {
        Ok(completed)
    } else {
        Err(ValidationError { errors, omitted: 0 }.into())
    }
}

fn written(receipt: &InventoryReceipt, id: Uuid) -> Result<NewReceipt, Error> {
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

/// Writes a message for each unit that is new, and an event for each that belongs to an RMA.
async fn tell(
    app: &App,
    conn: &mut AsyncPgConnection,
    request: &Request<'_>,
    completed: &[InventoryReceipt],
    new: &[NewReceipt],
    stored: &HashSet<Uuid>,
) -> Result<(), Error> {
    let (mut messages, mut events) = (Vec::with_capacity(stored.len()), Vec::new());
    let told = completed.iter().zip(new).filter(|(_, new)| stored.contains(&new.id));
    for (receipt, new) in told {
        let event =
            if new.rejected { "inventory_receipt.rejected" } else { "inventory_receipt.received" };
        messages.push(NewMessage {
            merchant: request.merchant.clone(),
            kind: MessageKind::InventoryReceipt,
            // Of its own: a shipment that leaves may have the same number.
            ordering_key: Some(format!("inbound_asn:{}", new.asn_number)),
            event: event.to_owned(),
            body: new.message.clone().into(),
        });
        events.extend(receipt.unit_received(request.merchant, new.id, request.at));
    }
    app.deliveries.append(conn, request.at, &messages).await?;
    app.outbox.append(conn, request.at, events).await?;
    Ok(())
}

/// The answer for every unit, in the order they came; for one known before, the answer of then.
async fn answer(
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
    let mut before = HashMap::new();
    if !known.is_empty() {
        for receipt in store::known(conn, request.merchant, &known).await? {
            let key = (receipt.asn_number.clone(), receipt.unit_identifier.clone());
            before.insert(key, ReceiptView::from(receipt));
        }
    }
    let view = |new: &NewReceipt| {
        let key = (new.asn_number.clone(), new.unit_identifier.clone());
        let first = before.get(&key).cloned();
        first.unwrap_or_else(|| ReceiptView::new(new, request.at))
    };
    Ok(ReceivedUnits::new(new.iter().map(view).collect()))
}
