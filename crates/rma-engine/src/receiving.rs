//! What arrives at our warehouse, where we receive for the merchant.

use delivery::Deliveries;
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::event::Event as _;
use domain::json::Digest;
use domain::merchant::Merchant;
use domain::returns::{Receipt, Rma};
use domain::warehouse::UnitReceived;
use platform::Timestamp;
use platform::idempotency::{self, IdempotencyKey, KeyState};
use serde_json::json;

use crate::App;
use crate::chronicle::{self, Cause};
use crate::error::Error;
use crate::returns::{lock, refused};
use crate::store;
use crate::store::timeline::{self, Note};

/// One step of receiving.
pub(crate) struct Delivered<'a> {
    pub(crate) receipt: Option<Receipt>,
    /// Whether nothing more is expected.
    pub(crate) close: bool,
    pub(crate) key: Option<IdempotencyKey<'a>>,
}

/// Takes note of what was found, then closes the receiving if asked to. Gives the return, as it
/// was given the first time.
#[tracing::instrument(skip_all, fields(rma.id = rma_identifier))]
pub(crate) async fn receive(
    app: &App,
    merchant: &Merchant,
    actor: &str,
    rma_identifier: &str,
    delivered: &Delivered<'_>,
) -> Result<String, Error> {
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let now = app.clock.now();
        idempotency::run(conn, delivered.key.as_ref(), now, async |conn| {
            step(app, conn, merchant, actor, rma_identifier, delivered, now).await
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
    delivered: &Delivered<'_>,
    now: Timestamp,
) -> Result<Rma, Error> {
    let id = &merchant.identifier;
    let refused = |refusal| refused(rma_identifier, refusal);
    let mut rma = lock(conn, merchant, rma_identifier).await?;
    if let Some(receipt) = &delivered.receipt {
        let change = rma.receive(receipt, now).map_err(refused)?;
        let detail = json!({ "findings": receipt.findings });
        let cause = Cause { actor, what: "receipt", detail };
        chronicle::record(conn, &app.deliveries, id, &rma, &change, cause, now).await?;
    }
    if delivered.close {
        let change = rma.close_receiving(now).map_err(refused)?;
        let cause = Cause { actor, what: "receiving closed", detail: json!({}) };
        chronicle::record(conn, &app.deliveries, id, &rma, &change, cause, now).await?;
    }
    Ok(rma)
}

/// Takes note of a unit that the warehouse reports, once for each receipt. An RMA that is not
/// ours is the merchant's own business; one that does not take the unit notes that it did not.
pub(crate) async fn note_unit(
    conn: &mut AsyncPgConnection,
    deliveries: &Deliveries,
    received: &UnitReceived,
    now: Timestamp,
) -> Result<(), Error> {
    let UnitReceived { merchant, rma_identifier, receipt, .. } = received;
    let key = receipt.to_string();
    let request = Digest::of_value(&json!(key));
    let operation = UnitReceived::TYPE;
    let key = IdempotencyKey { merchant, operation, key: &key, name: "receipt", request };
    if key.insert(conn, now).await? != KeyState::New {
        return Ok(());
    }
    let Some(mut rma) = store::returns::lock(conn, merchant, rma_identifier).await? else {
        tracing::info!(rma.id = rma_identifier, "a unit was received for an RMA that is not ours");
        return Ok(());
    };
    let detail = json!({
        "receipt": receipt,
        "asn_number": received.asn_number,
        "unit_identifier": received.unit_identifier,
        "condition": received.condition,
        "reject_reason": received.reject_reason,
    });
    let actor = UnitReceived::TYPE;
    match rma.receive_unit(received, now) {
        Ok(change) => {
            let cause = Cause { actor, what: "receipt", detail };
            chronicle::record(conn, deliveries, merchant, &rma, &change, cause, now).await?;
        }
        Err(refusal) => {
            let detail = json!({ "refused": refusal, "receipt": detail });
            let note = Note { actor, event: "receipt", detail, delivery: None };
            timeline::add(conn, merchant, rma_identifier, &note, now).await?;
        }
    }
    Ok(())
}
