//! Labels of parcels. They are requested when a return starts, applied when the provider responds, and canceled when they
//! are not needed.
//!
//! A request and its message are stored in the transaction of the return, and the effects of a response in the
//! transaction that settles the message. Each of these transactions locks the return before its requests.
//!
//! See docs/decisions/label-requests.md.

pub(crate) mod expiry;
pub(crate) mod metrics;
pub(crate) mod requests;
pub(crate) mod responses;
pub(crate) mod retries;
pub(crate) mod sealed;
pub(crate) mod settlement;

use std::collections::BTreeSet;

use delivery::{Deliveries, MessageWriter};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::labels::{CancelReason, LabelCanceled, LabelRequested};
use domain::merchant::Merchant;
use domain::order::Order;
use domain::returns::{Discrepancy, Rma, RmaUnit};
use platform::Timestamp;
use platform::database::DatabaseError;
use uuid::Uuid;

use crate::label_messages;
use crate::return_changes::ReturnChanges;
use crate::store::label_requests::{self, LabelRequest};
use crate::store::orders::ResourceKey;
use crate::store::{discrepancies, returns};

/// Requests the labels of a return that starts. `order` finds its orders.
pub(crate) fn request<'a>(
    merchant: &Merchant,
    rma: &Rma,
    order: impl Fn(&str) -> Option<&'a Order>,
    changes: &mut ReturnChanges,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let new_ids = |number| Deliveries::new_ids(now, number);
    let requests = LabelRequested::of_return(merchant, rma, order, new_ids, now)
        .map_err(|error| DatabaseError::Internal(error.to_string()))?;
    requests.iter().try_for_each(|requested| changes.add_label_request(requested))
}

/// Cancels the live requests of locked returns whose parcels have no unit any more.
pub(crate) async fn cancel_unused(
    messages: &MessageWriter,
    conn: &mut AsyncPgConnection,
    returns: &[&Rma],
    reason: CancelReason,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let keys: Vec<_> = returns.iter().map(|rma| key(rma)).collect();
    for request in label_requests::lock_live(conn, &keys).await? {
        let own = (request.merchant.as_str(), request.rma_identifier.as_str());
        let rma = returns.iter().find(|rma| key(rma) == own);
        if rma.is_some_and(|rma| units_in(rma, &request).next().is_none()) {
            cancel(messages, conn, &request, reason, now).await?;
        }
    }
    Ok(())
}

/// Applies labels that carriers reported, each with its locked return, to the live requests of these returns. Such a label
/// is that of a request, or replaces the label of one, which is then canceled.
pub(crate) async fn follow_reports(
    messages: &MessageWriter,
    conn: &mut AsyncPgConnection,
    labeled: &[(&Rma, &str)],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let keys: BTreeSet<_> = labeled.iter().map(|(rma, _)| key(rma)).collect();
    let keys: Vec<_> = keys.into_iter().collect();
    for request in label_requests::lock_live(conn, &keys).await? {
        // The last label of a batch is the newest.
        let reported = labeled.iter().rev().find_map(|(rma, number)| {
            let is_own = key(rma) == (request.merchant.as_str(), request.rma_identifier.as_str());
            let has_number = |unit: &&RmaUnit| unit.tracking_number.as_deref() == Some(*number);
            units_in(rma, &request).find(has_number).filter(|_| is_own)
        });
        let Some(unit) = reported else { continue };
        match (&request.tracking_number, &unit.tracking_number) {
            (None, Some(number)) => {
                let url = unit.label.as_ref().map(|label| label.url.as_str());
                label_requests::complete(conn, &request, number, url, now).await?;
            }
            (Some(own), number) if number.as_ref() != Some(own) => {
                let used = number.as_deref();
                record_unused(conn, &request, own, used, now).await?;
                cancel(messages, conn, &request, CancelReason::Unused, now).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Records a label that is not used for staff, because the provider may charge it.
async fn record_unused(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    tracking_number: &str,
    used_tracking_number: Option<&str>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let discrepancy = Discrepancy::UnusedLabel {
        rma_identifier: request.rma_identifier.clone(),
        parcel: request.parcel,
        tracking_number: tracking_number.to_owned(),
        used_tracking_number: used_tracking_number.map(str::to_owned),
    };
    discrepancies::record(conn, &[(request.merchant.clone(), discrepancy)], now).await
}

fn key(rma: &Rma) -> ResourceKey<'_> {
    (rma.merchant.as_str(), rma.rma_identifier.as_str())
}

/// Locks a merchant's request and its return; the return first, as in every transaction.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    id: Uuid,
) -> Result<Option<(Rma, LabelRequest)>, DatabaseError> {
    let Some(found) = label_requests::find(conn, merchant, id).await? else { return Ok(None) };
    let rma = returns::lock(conn, merchant, &found.rma_identifier).await?;
    let missing = || DatabaseError::Internal(format!("label request {id} has no return"));
    let rma = rma.ok_or_else(missing)?;
    let request = label_requests::lock(conn, merchant, id).await?;
    Ok(request.map(|request| (rma, request)))
}

/// The units of a parcel that are still part of the return.
fn units_in<'a>(rma: &'a Rma, request: &'a LabelRequest) -> impl Iterator<Item = &'a RmaUnit> {
    let left = rma.units.iter().filter(|unit| unit.canceled_at.is_none());
    left.filter(move |unit| request.units.contains(&unit.id))
}

/// Cancels a live request, and its label if the provider made one.
async fn cancel(
    messages: &MessageWriter,
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    reason: CancelReason,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let number = request.tracking_number.as_deref();
    let cancellation = cancel_label(messages, conn, request, number, reason, now).await?;
    label_requests::cancel(conn, request, cancellation, now).await
}

/// Tells the provider to cancel a label of a request. Returns the id of the message.
async fn cancel_label(
    messages: &MessageWriter,
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    tracking_number: Option<&str>,
    reason: CancelReason,
    now: Timestamp,
) -> Result<Uuid, DatabaseError> {
    let parcel = (&request.merchant, request.rma_identifier.as_str(), request.parcel);
    let canceled = LabelCanceled::new(request.id, parcel, tracking_number, reason, now);
    let message = label_messages::canceled(messages, &canceled)?;
    let ids = messages.append(conn, now, &[message]).await?;
    let missing = || {
        DatabaseError::Internal(format!(
            "the cancellation of label request {} has no id",
            request.id
        ))
    };
    ids.first().copied().ok_or_else(missing)
}
