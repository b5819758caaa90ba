//! Requests that people send again or cancel.

use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::labels::{CancelReason, LabelRequested, LabelState, Parcel};
use domain::merchant::Merchant;
use domain::returns::{Rma, RmaUnit};
use platform::Timestamp;
use platform::idempotency::{self, IdempotencyKey};
use serde_json::json;
use uuid::Uuid;

use super::requests::{self, LabelRequestDetails};
use super::responses::add_entry;
use super::{cancel, key, lock, units_in};
use crate::App;
use crate::error::Error;
use crate::return_changes::ReturnChanges;
use crate::store::label_requests::{self, LabelRequest};
use crate::store::orders::{self, RowLock};
use crate::store::returns;

/// Requests for a parcel after which its shopper gets no further label without the merchant: each may cost money.
pub(crate) const MAX_REQUESTS_OF_SHOPPER: usize = 3;

/// The person or client that asks for a change, and the reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) by: &'a str,
    pub(crate) note: Option<&'a str>,
}

/// Requests the label of a parcel again, with a new id and the present data of its order. A request whose message is
/// dead is canceled first, because the provider may have made its label.
#[tracing::instrument(skip_all, fields(label_request = %id))]
pub(crate) async fn retry(
    app: &App,
    merchant: &Merchant,
    id: Uuid,
    asked: Asked<'_>,
    once: Option<&IdempotencyKey<'_>>,
) -> Result<String, Error> {
    app.pool
        .transaction_of(merchant.identifier.as_str(), async |conn| {
            let now = app.clock.now();
            idempotency::run(conn, once, now, async |conn| {
                let new = request_again(app, conn, merchant, id, asked, now).await?;
                requests::show(conn, &app.sealer, Some(&merchant.identifier), new).await
            })
            .await
        })
        .await
}

/// Requests the labels of a return again that have expired, but none for a parcel that has had `most` requests.
#[tracing::instrument(skip_all, fields(rma.id = rma_identifier))]
pub(crate) async fn renew(
    app: &App,
    merchant: &Merchant,
    rma_identifier: &str,
    by: &str,
    most: usize,
) -> Result<(), Error> {
    let id = &merchant.identifier;
    app.pool
        .transaction_of(id.as_str(), async |conn| {
            let now = app.clock.now();
            let rma = returns::lock(conn, id, rma_identifier).await?;
            let rma = rma.ok_or_else(|| Error::NoReturn(rma_identifier.to_owned()))?;
            let expired = label_requests::expired(conn, key(&rma)).await?;
            for (request, number) in expired {
                if number >= most {
                    continue;
                }
                let asked = Asked { by, note: None };
                match request_again(app, conn, merchant, request, asked, now).await {
                    Ok(_) | Err(Error::NoLabelNeeded { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
        .await
}

/// Returns the id of the new request.
async fn request_again(
    app: &App,
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    id: Uuid,
    asked: Asked<'_>,
    now: Timestamp,
) -> Result<Uuid, Error> {
    if !merchant.requests_labels() {
        return Err(Error::NoLabelProvider(merchant.identifier.clone()));
    }
    let locked = lock(conn, &merchant.identifier, id).await?;
    let (rma, request) = locked.ok_or(Error::NoLabelRequest(id))?;
    let units: Vec<&RmaUnit> = units_in(&rma, &request).collect();
    if units.is_empty() || units.iter().any(|unit| unit.has_arrived()) {
        let rma = request.rma_identifier.clone();
        return Err(Error::NoLabelNeeded { rma, parcel: request.parcel });
    }
    let live = label_requests::lock_live(conn, &[key(&rma)]).await?;
    match live.iter().find(|other| other.parcel == request.parcel) {
        Some(own) if own.id == id && own.is_undeliverable => {
            cancel(&app.deliveries, conn, own, CancelReason::RequestCanceled, now).await?;
        }
        Some(other) => return Err(in_state(other, "it must end before another is sent")),
        None => {}
    }
    let requested = new_request(conn, merchant, (&rma, &request), &units, now).await?;
    let mut changes = ReturnChanges::new(&app.deliveries);
    changes.add_label_request(&requested)?;
    changes.save_changed(conn, now).await?;
    let new = requested.label_request_id;
    let detail = json!({ "note": asked.note, "replaced_label_request_id": id });
    add_entry(conn, &request, (asked.by, "label requested", Some(new)), detail, now).await?;
    Ok(new)
}

async fn new_request(
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    (rma, request): (&Rma, &LabelRequest),
    units: &[&RmaUnit],
    now: Timestamp,
) -> Result<LabelRequested, Error> {
    let owner = rma.merchant.as_str();
    let of_units = units.iter().map(|unit| (owner, unit.id.order_identifier.as_str()));
    let orders = orders::find(conn, &of_units.collect(), RowLock::None).await?;
    let order = |name: &str| {
        let mut orders = orders.iter().map(|(_, projected)| &projected.order);
        orders.find(|order| order.identifier == name)
    };
    let parcel = Parcel { number: request.parcel, count: request.parcel_count, units };
    let id = Deliveries::new_ids(now, 1).first().copied();
    let id = id.ok_or_else(|| Error::Internal("a label request got no id".to_owned()))?;
    let requested = LabelRequested::of_parcel(merchant, rma, parcel, order, id, now);
    requested.map_err(|error| Error::Internal(error.to_string()))
}

/// Cancels a request, and its label if the provider made one. Canceling it again changes nothing.
#[tracing::instrument(skip_all, fields(label_request = %id))]
pub(crate) async fn cancel_request(
    app: &App,
    merchant: &Merchant,
    id: Uuid,
    asked: Asked<'_>,
) -> Result<LabelRequestDetails, Error> {
    app.pool
        .transaction_of(merchant.identifier.as_str(), async |conn| {
            let now = app.clock.now();
            let locked = lock(conn, &merchant.identifier, id).await?;
            let (_, request) = locked.ok_or(Error::NoLabelRequest(id))?;
            match request.state {
                state if state.is_live() => {
                    let reason = CancelReason::RequestCanceled;
                    cancel(&app.deliveries, conn, &request, reason, now).await?;
                    let detail = json!({ "note": asked.note });
                    let entry = (asked.by, "label canceled", None);
                    add_entry(conn, &request, entry, detail, now).await?;
                }
                LabelState::Canceled => {}
                _ => return Err(in_state(&request, "there is nothing to cancel")),
            }
            requests::show(conn, &app.sealer, Some(&merchant.identifier), id).await
        })
        .await
}

fn in_state(request: &LabelRequest, detail: &'static str) -> Error {
    Error::LabelRequestState { id: request.id, state: request.state, detail }
}
