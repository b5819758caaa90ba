//! Orders that a warehouse sends to shoppers on a merchant's behalf: sent, called off, or called
//! off in part.
//!
//! The merchant's own identifier of the order, `client_identifier`, is what ties the three
//! together.

mod address;
mod cancellation;
mod confirmation;
mod partial;

pub use cancellation::DropShipmentCancellation;
pub use confirmation::DropShipmentConfirmation;
pub use partial::DropShipmentPartialCancellation;

use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::Number;

use super::MAX_MESSAGE_BYTES;
use crate::json::{Digest, Document, Field, FieldError, ValidationError, number, object};
use crate::message_kind::MessageKind;

const MAX_ITEMS: usize = 1_000;
const QUANTITY: RangeInclusive<i64> = 1..=1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropShipmentKind {
    Confirmation,
    Cancellation,
    PartialCancellation,
}

impl DropShipmentKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirmation => "confirmation",
            Self::Cancellation => "cancellation",
            Self::PartialCancellation => "partial_cancellation",
        }
    }

    /// The kind of message.
    pub fn message_kind(self) -> MessageKind {
        match self {
            Self::Confirmation => MessageKind::DropShipmentConfirmation,
            Self::Cancellation => MessageKind::DropShipmentCancellation,
            Self::PartialCancellation => MessageKind::DropShipmentPartialCancellation,
        }
    }

    /// What the merchant is told has happened.
    pub fn event(self) -> &'static str {
        match self {
            Self::Confirmation => "drop_shipment.confirmed",
            Self::Cancellation => "drop_shipment.cancelled",
            Self::PartialCancellation => "drop_shipment.partially_cancelled",
        }
    }
}

/// A message about a drop shipment, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropShipment {
    pub kind: DropShipmentKind,
    /// The merchant's identifier of the order.
    pub order: String,
    /// What the message is known by: there is one for each shipment confirmed and each order
    /// cancelled, and any number of different ones for what is cancelled in part.
    pub reference: String,
    /// Of the message: what it does not say makes no difference.
    pub digest: Digest,
    /// The message.
    pub body: String,
}

impl DropShipment {
    pub fn read(kind: DropShipmentKind, document: &Document) -> Result<Self, ValidationError> {
        let (order, reference, (body, digest)) = match kind {
            DropShipmentKind::Confirmation => {
                let message = document.read(object(DropShipmentConfirmation::read))?;
                let shipment = &message.shipment;
                (shipment.client_identifier.clone(), shipment.id.to_string(), write(&message)?)
            }
            DropShipmentKind::Cancellation => {
                let message = document.read(object(DropShipmentCancellation::read))?;
                let order = &message.order;
                (order.client_identifier.clone(), order.id.to_string(), write(&message)?)
            }
            DropShipmentKind::PartialCancellation => {
                let message = document.read(object(DropShipmentPartialCancellation::read))?;
                let (body, digest) = write(&message)?;
                (message.order.client_identifier, hex(&digest), (body, digest))
            }
        };
        Ok(Self { kind, order: order.to_string(), reference, digest, body })
    }

    /// The field by which the merchant knows the order.
    pub fn order_field(&self) -> &'static str {
        match self.kind {
            DropShipmentKind::Confirmation => "$.shipment.client_identifier",
            _ => "$.order.client_identifier",
        }
    }

    /// The field that makes the message one of its own.
    pub fn reference_field(&self) -> &'static str {
        match self.kind {
            DropShipmentKind::Confirmation => "$.shipment.id",
            _ => "$.order.id",
        }
    }
}

/// A message has at most as many bytes as one about an outbound shipment.
fn write(message: &impl Serialize) -> Result<(String, Digest), ValidationError> {
    let refused = |detail| FieldError::invalid("$", detail);
    let unwritten = |error: serde_json::Error| refused(error.to_string());
    let body = serde_json::to_string(message).map_err(unwritten)?;
    if body.len() > MAX_MESSAGE_BYTES {
        let size = body.len();
        let detail =
            format!("makes a message of {size} bytes; at most {MAX_MESSAGE_BYTES} are sent");
        return Err(refused(detail).into());
    }
    let digest = Digest::of_value(&serde_json::to_value(message).map_err(unwritten)?);
    Ok((body, digest))
}

fn hex(digest: &Digest) -> String {
    digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number that is not negative, as it came.
fn measure(field: Field<'_>) -> Option<Number> {
    number(0.0..=1e12)(field)?;
    field.value().as_number()
}
