//! Applies the responses of label providers.
//!
//! A label that the parcel does not need is canceled at the provider: one for a request that ended, another one for a
//! request that has its label, and one that cannot be used.

use std::borrow::Cow;

use delivery::{Deliveries, MessageWriter};
use diesel_async::AsyncPgConnection;
use domain::labels::{BoughtLabel, CancelReason, LabelRefusal, LabelState};
use domain::returns::{
    CarrierReport, Change, Label, LabelKind, Rma, RmaUnit, TrackingEvent, UnitId,
};
use platform::Timestamp;
use platform::database::DatabaseError;
use platform::sealing::Sealer;
use serde_json::{Value, json};
use uuid::Uuid;

use super::sealed::seal;
use super::{cancel, cancel_label, record_unused, units_in};
use crate::return_changes::{self, Cause};
use crate::store::erasures;
use crate::store::label_requests::{self, LabelRequest};
use crate::store::timeline::{self, NewEntry};

/// A response of a provider.
#[derive(Debug)]
pub(crate) enum Response {
    /// The provider makes the label later.
    Accepted,
    Bought(BoughtLabel),
    Refused(LabelRefusal),
    /// A success without a label that can be used.
    Unusable(String),
}

/// The caller of [`apply`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Provider<'a> {
    /// The client, or the name of the message that the provider responded to.
    pub(crate) actor: &'a str,
    /// Seals the label.
    pub(crate) sealer: &'a Sealer,
    pub(crate) now: Timestamp,
}

/// Applies a response to a request. The return and the request are locked. A response that comes again changes nothing.
pub(crate) async fn apply(
    messages: &MessageWriter,
    conn: &mut AsyncPgConnection,
    (rma, request): (&mut Rma, &LabelRequest),
    response: &Response,
    provider: Provider<'_>,
) -> Result<(), DatabaseError> {
    let now = provider.now;
    match (request.state.is_open(), response) {
        (true, Response::Accepted) => label_requests::accept(conn, request, now).await,
        (true, Response::Bought(label)) => {
            buy(messages, conn, (rma, request), label, provider).await
        }
        (true, Response::Refused(refusal)) => refuse(conn, request, refusal, provider).await,
        (true, Response::Unusable(detail)) => {
            let reason = CancelReason::Unusable;
            cancel_label(messages, conn, request, None, reason, now).await?;
            refuse(conn, request, &LabelRefusal::other(detail), provider).await
        }
        (false, Response::Bought(label)) => {
            if is_known(conn, request, label).await? {
                return Ok(());
            }
            cancel_other(messages, conn, request, &label.tracking_number, now).await
        }
        (false, Response::Accepted | Response::Refused(_) | Response::Unusable(_)) => Ok(()),
    }
}

/// Stores a label and gives its tracking number to the units of the parcel, of which the merchant gets a message.
async fn buy(
    messages: &MessageWriter,
    conn: &mut AsyncPgConnection,
    (rma, request): (&mut Rma, &LabelRequest),
    label: &BoughtLabel,
    Provider { actor, sealer, now }: Provider<'_>,
) -> Result<(), DatabaseError> {
    let label = storable(conn, request, label).await?;
    let label: &BoughtLabel = &label;
    // A unit that came back in another way needs no label.
    let needs_label = |unit: &&RmaUnit| {
        !unit.has_arrived() || unit.tracking_number.as_ref() == Some(&label.tracking_number)
    };
    let units = units_in(rma, request).filter(needs_label).map(|unit| unit.id.clone()).collect();
    let Some(change) = track(rma, units, label, now) else {
        let request = LabelRequest {
            tracking_number: Some(label.tracking_number.clone()),
            ..request.clone()
        };
        return cancel(messages, conn, &request, CancelReason::Unused, now).await;
    };
    let sealed = seal(sealer, request, label)
        .map_err(|error| DatabaseError::Internal(format!("sealing a label: {error}")))?;
    label_requests::buy(conn, request, label, &sealed, now).await?;
    let cause = Cause { actor, action: "label response", detail: detail(request, label) };
    return_changes::record(conn, messages, rma, &change, cause, now).await
}

/// The label, without what shows the address of a shopper who was erased after the request.
async fn storable<'a>(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    label: &'a BoughtLabel,
) -> Result<Cow<'a, BoughtLabel>, DatabaseError> {
    let LabelRequest { merchant, rma_identifier, requested_at, .. } = request;
    let erased_at = erasures::erased_at(conn, merchant, rma_identifier).await?;
    if erased_at.is_none_or(|erased_at| erased_at < *requested_at) {
        return Ok(Cow::Borrowed(label));
    }
    Ok(Cow::Owned(BoughtLabel { label: None, qr_code: None, ..label.clone() }))
}

/// The change of the return by its label; `None` if the return takes none any more.
fn track(rma: &mut Rma, units: Vec<UnitId>, label: &BoughtLabel, now: Timestamp) -> Option<Change> {
    if units.is_empty() {
        return None;
    }
    let kind = match &label.qr_code {
        // The URL then leads to the label for printers.
        Some(_) => LabelKind::Printable,
        None => LabelKind::usual_for(rma.return_method),
    };
    let report = CarrierReport {
        event: TrackingEvent::Label,
        tracking_number: Some(label.tracking_number.clone()),
        units: Some(units),
        occurred_at: Some(now),
        label: label.url().map(|url| Label { url: url.to_owned(), kind }),
    };
    rma.track(&report, now).ok()
}

/// The label in the timeline, like that of a carrier's report.
fn detail(request: &LabelRequest, label: &BoughtLabel) -> Value {
    json!({
        "event": TrackingEvent::Label,
        "label_request_id": request.id,
        "parcel": request.parcel,
        "tracking_number": label.tracking_number,
        "carrier": label.carrier,
        "service": label.service,
        "label_url": label.url(),
    })
}

async fn refuse(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    refusal: &LabelRefusal,
    Provider { actor, now, .. }: Provider<'_>,
) -> Result<(), DatabaseError> {
    label_requests::refuse(conn, request, refusal, now).await?;
    let detail = json!({ "refusal": refusal.reason, "detail": refusal.detail });
    add_entry(conn, request, (actor, "label refused", None), detail, now).await
}

/// Records that the message of a request is dead. The request stays open: a replay may still get the label.
pub(crate) async fn fail(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    detail: &str,
    Provider { actor, now, .. }: Provider<'_>,
) -> Result<(), DatabaseError> {
    label_requests::fail(conn, request, detail, now).await?;
    let entry = (actor, "label undeliverable", Some(request.id));
    add_entry(conn, request, entry, json!({ "detail": detail }), now).await
}

/// Adds an entry without a message to the merchant to the timeline of the return.
pub(super) async fn add_entry(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    (actor, action, delivery): (&str, &str, Option<Uuid>),
    mut detail: Value,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    if let Value::Object(members) = &mut detail {
        members.insert("cause".to_owned(), json!(action));
        members.insert("label_request_id".to_owned(), json!(request.id));
        members.insert("parcel".to_owned(), json!(request.parcel));
    }
    let entry = NewEntry {
        merchant: request.merchant.clone(),
        rma_identifier: request.rma_identifier.clone(),
        at: now,
        actor: actor.to_owned(),
        event: action.to_owned(),
        detail,
        delivery,
    };
    timeline::add(conn, &[entry]).await
}

/// Whether a label for a request that is not open needs no message: it is that of the request, or the message that
/// cancels the request is still behind this one.
async fn is_known(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    label: &BoughtLabel,
) -> Result<bool, DatabaseError> {
    if request.tracking_number.as_ref() == Some(&label.tracking_number) {
        return Ok(true);
    }
    match request.cancellation {
        Some(cancellation) => Deliveries::is_pending(conn, cancellation).await,
        None => Ok(false),
    }
}

/// Cancels another label than that of the request.
async fn cancel_other(
    messages: &MessageWriter,
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    tracking_number: &str,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let used = request.tracking_number.as_deref().filter(|_| request.state == LabelState::Bought);
    record_unused(conn, request, tracking_number, used, now).await?;
    let reason = CancelReason::Unused;
    cancel_label(messages, conn, request, Some(tracking_number), reason, now).await?;
    Ok(())
}
