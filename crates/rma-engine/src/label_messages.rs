//! The messages to label providers. Those about one return arrive in order.

use delivery::{MessageWriter, NewDelivery, NewMessage};
use domain::access::MerchantId;
use domain::labels::{LABEL_CANCELED, LABEL_REQUESTED, LabelCanceled, LabelRequested};
use domain::message_kind::MessageKind;
use platform::database::DatabaseError;
use platform::telemetry;
use serde::Serialize;

/// The message of a request. It has the id of the request.
pub(crate) fn requested(
    messages: &MessageWriter,
    requested: &LabelRequested,
) -> Result<NewDelivery, DatabaseError> {
    let LabelRequested { label_request_id: id, merchant, rma_identifier, .. } = requested;
    let message = new(messages, (merchant, rma_identifier), LABEL_REQUESTED, requested)?;
    Ok(NewDelivery { id: *id, traceparent: telemetry::traceparent(), message })
}

/// The message of a cancellation.
pub(crate) fn canceled(
    messages: &MessageWriter,
    canceled: &LabelCanceled,
) -> Result<NewMessage, DatabaseError> {
    let LabelCanceled { merchant, rma_identifier, .. } = canceled;
    new(messages, (merchant, rma_identifier), LABEL_CANCELED, canceled)
}

fn new(
    messages: &MessageWriter,
    (merchant, rma_identifier): (&MerchantId, &str),
    event: &str,
    body: &impl Serialize,
) -> Result<NewMessage, DatabaseError> {
    let body = serde_json::to_vec(body)
        .map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
    Ok(NewMessage {
        merchant: merchant.clone(),
        kind: MessageKind::LabelRequest,
        version: messages.message_version(merchant, MessageKind::LabelRequest),
        // Below the key of the return, so that a search for the return finds the message too. A provider that does not
        // respond does not delay the messages to the merchant, which have that key itself.
        ordering_key: Some(format!("rma:{rma_identifier}/labels")),
        event: event.to_owned(),
        body: body.into(),
    })
}
