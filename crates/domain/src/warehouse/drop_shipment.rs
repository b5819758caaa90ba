//! Drop shipments: orders that the warehouse ships to shoppers for a merchant.
//!
//! There are three messages: confirmation, cancellation and partial cancellation. The merchant's
//! order identifier, `client_identifier`, connects them.

mod address;
mod cancellation;
mod confirmation;
mod limits;
mod partial;

pub use cancellation::DropShipmentCancellation;
pub use confirmation::DropShipmentConfirmation;
pub use partial::DropShipmentPartialCancellation;

use serde::Serialize;
use strum::IntoStaticStr;

use super::identifier::Identifier;
use super::limits::MAX_MESSAGE_BYTES;
use crate::json::{Digest, Document, FieldError, ValidationError, object};
use crate::message_kind::MessageKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum DropShipmentKind {
    Confirmation,
    Cancellation,
    PartialCancellation,
}

impl DropShipmentKind {
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn message_kind(self) -> MessageKind {
        match self {
            Self::Confirmation => MessageKind::DropShipmentConfirmation,
            Self::Cancellation => MessageKind::DropShipmentCancellation,
            Self::PartialCancellation => MessageKind::DropShipmentPartialCancellation,
        }
    }

    /// The event type in the message.
    pub fn event(self) -> &'static str {
        match self {
            Self::Confirmation => "drop_shipment.confirmed",
            Self::Cancellation => "drop_shipment.cancelled",
            Self::PartialCancellation => "drop_shipment.partially_cancelled",
        }
    }
}

/// A message about a drop shipment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropShipment {
    pub kind: DropShipmentKind,
    /// The merchant's identifier of the order.
    pub order: String,
    /// The identity of the message: the shipment of a confirmation, the order of a cancellation, or
    /// the digest of a partial cancellation, because an order can have several.
    pub reference: String,
    /// The tracking number of a confirmation.
    pub tracking_number: Option<Identifier>,
    /// The digest of the message, without unknown fields of the report.
    pub digest: Digest,
    /// The message as JSON.
    pub body: String,
}

impl DropShipment {
    pub fn read(kind: DropShipmentKind, document: &Document) -> Result<Self, ValidationError> {
        let mut tracking_number = None;
        let (order, reference, (body, digest)) = match kind {
            DropShipmentKind::Confirmation => {
                let mut message = document.read(object(DropShipmentConfirmation::read))?;
                message.keep_weight_text(document.text());
                let shipment = &message.shipment;
                tracking_number.clone_from(&shipment.tracking_number);
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
        Ok(Self { kind, order: order.to_string(), reference, tracking_number, digest, body })
    }

    /// The JSONPath of the merchant's order identifier.
    pub fn order_field(&self) -> &'static str {
        match self.kind {
            DropShipmentKind::Confirmation => "$.shipment.client_identifier",
            _ => "$.order.client_identifier",
        }
    }

    /// The JSONPath of the identity.
    pub fn reference_field(&self) -> &'static str {
        match self.kind {
            DropShipmentKind::Confirmation => "$.shipment.id",
            _ => "$.order.id",
        }
    }
}

/// Serializes a message, and checks its size.
fn write(message: &impl Serialize) -> Result<(String, Digest), ValidationError> {
    let invalid = |detail| FieldError::invalid("$", detail);
    let to_error = |error: serde_json::Error| invalid(error.to_string());
    let body = serde_json::to_string(message).map_err(to_error)?;
    if body.len() > MAX_MESSAGE_BYTES {
        let size = body.len();
        let detail =
            format!("makes a message of {size} bytes; at most {MAX_MESSAGE_BYTES} are sent");
        return Err(invalid(detail).into());
    }
    let digest = Digest::of_value(&serde_json::to_value(message).map_err(to_error)?);
    Ok((body, digest))
}

fn hex(digest: &Digest) -> String {
    digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
