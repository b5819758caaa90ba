//! Receiving of returned units at our warehouse, for merchants with managed receiving.
//!
//! See docs/decisions/parcels-and-receiving.md.

use diesel_async::AsyncPgConnection;
use domain::event::Event as _;
use domain::json::{Digest, FieldError, ValidationError};
use domain::merchant::Merchant;
use domain::returns::{Finding, Receipt, Rma, TransitionError, UnitId};
use domain::warehouse::UnitReceived;
use platform::Timestamp;
use platform::idempotency::{self, IdempotencyKey, KeyState};
use serde_json::json;

use crate::App;
use crate::erasing::receipt_without_erased;
use crate::error::Error;
use crate::messages::Messages;
use crate::return_changes::{self, Cause, ReturnChanges};
use crate::returns::reopening::FreeUnits;
use crate::returns::{lock, refused};
use crate::store;
use crate::store::timeline::{self, NewEntry};

pub(crate) struct ReceivingRequest<'a> {
    pub(crate) receipt: Option<Receipt>,
    /// Whether receiving ends with this request.
    pub(crate) close: bool,
    pub(crate) key: Option<IdempotencyKey<'a>>,
}

/// Records the findings, then closes receiving if requested. Returns the return; a repeated request
/// gets the first response.
#[tracing::instrument(skip_all, fields(rma.id = rma_identifier))]
pub(crate) async fn receive(
    app: &App,
    merchant: &Merchant,
    actor: &str,
    rma_identifier: &str,
    receiving: &ReceivingRequest<'_>,
) -> Result<String, Error> {
    app.pool
        .transaction_of(merchant.identifier.as_str(), async |conn| {
            let now = app.clock.now();
            idempotency::run(conn, receiving.key.as_ref(), now, async |conn| {
                step(app, conn, merchant, actor, rma_identifier, receiving, now).await
            })
            .await
        })
        .await
}

async fn step(
    app: &App,
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    actor: &str,
    rma_identifier: &str,
    receiving: &ReceivingRequest<'_>,
    now: Timestamp,
) -> Result<Rma, Error> {
    let refused = |refusal| refused(rma_identifier, refusal);
    let named = [(merchant.identifier.as_str(), rma_identifier)];
    let free = FreeUnits::lock(conn, &named, &[]).await?;
    let mut rma = lock(conn, merchant, rma_identifier).await?;
    free.check(&rma, receiving.receipt.is_some())?;
    // Both changes are saved together, so that the ids of their messages follow their order.
    let mut changes = ReturnChanges::new(&app.messages);
    if let Some(receipt) = &receiving.receipt {
        let is_free = |unit: &UnitId| free.has(&merchant.identifier, unit);
        let change = rma.receive_late(receipt, is_free, now).map_err(|refusal| match refusal {
            TransitionError::UnknownUnit => unknown_units(&rma, receipt),
            refusal => refused(refusal),
        })?;
        let detail = json!({ "findings": receipt.findings });
        changes.add(&rma, &change, Cause { actor, action: "receipt", detail }, now)?;
    }
    if receiving.close {
        let change = rma.close_receiving(now).map_err(refused)?;
        let cause = Cause { actor, action: "receiving closed", detail: json!({}) };
        changes.add(&rma, &change, cause, now)?;
    }
    changes.save(conn, now).await?;
    Ok(rma)
}

/// The findings about units that the return does not have.
fn unknown_units(rma: &Rma, receipt: &Receipt) -> Error {
    let findings = receipt.findings.iter().enumerate();
    let unknown = findings.filter(|(_, finding)| {
        let id = finding.unit();
        id.is_some_and(|id| !rma.active_units().any(|unit| unit.id == *id))
    });
    let error = |(index, _): (usize, &Finding)| {
        FieldError::invalid(format!("$.findings[{index}]"), "the return has no such unit")
    };
    let errors = unknown.map(error).collect();
    ValidationError { errors, omitted: 0 }.into()
}

/// Records a unit that the warehouse reports, once for each receipt. Units of unknown RMAs are
/// ignored, because merchants also issue RMAs themselves. A rejected unit only adds a timeline
/// entry.
pub(crate) async fn record_unit(
    conn: &mut AsyncPgConnection,
    messages: &Messages,
    received: &UnitReceived,
    now: Timestamp,
) -> Result<(), Error> {
    let UnitReceived { merchant, rma_identifier, receipt, .. } = received;
    let key = receipt.to_string();
    let request = Digest::of_value(&json!(key));
    let operation = UnitReceived::TYPE;
    let owner = Some(merchant);
    let key = IdempotencyKey { merchant: owner, operation, key: &key, name: "receipt", request };
    if key.insert(conn, now).await? != KeyState::New {
        return Ok(());
    }
    let named = [(merchant.as_str(), rma_identifier.as_str())];
    let free = FreeUnits::lock(conn, &named, &[]).await?;
    let Some(mut rma) = store::returns::lock(conn, merchant, rma_identifier).await? else {
        tracing::info!(rma.id = rma_identifier, "a unit was received for an RMA that is not ours");
        return Ok(());
    };
    free.check(&rma, true)?;
    let received = receipt_without_erased(conn, received).await?;
    let detail = json!({
        "receipt": receipt,
        "asn_number": received.asn_number,
        "unit_identifier": received.unit_identifier,
        "condition": received.condition,
        "reject_reason": received.reject_reason,
    });
    let actor = UnitReceived::TYPE;
    match rma.receive_unit_late(&received, |unit| free.has(merchant, unit), now) {
        Ok(change) => {
            let cause = Cause { actor, action: "receipt", detail };
            return_changes::record(conn, messages, &rma, &change, cause, now).await?;
        }
        Err(refusal) => {
            let detail = json!({ "refused": refusal, "receipt": detail });
            let entry = NewEntry {
                merchant: merchant.clone(),
                rma_identifier: rma_identifier.clone(),
                at: now,
                actor: actor.to_owned(),
                event: "receipt".to_owned(),
                detail,
                delivery: None,
            };
            timeline::add(conn, &[entry]).await?;
        }
    }
    Ok(())
}
