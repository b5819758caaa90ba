//! What happens in a warehouse, and what the merchant is told of it.
//!
//! An [`OutboundShipment`] leaves a warehouse and is told as one ASN or several; an
//! [`InboundAsn`] says what a merchant expects to arrive, an [`InventoryReceipt`] that a unit did;
//! a drop shipment was sent or called off on a merchant's behalf. What comes out of a `read` keeps
//! every rule of the contract's tables, and what is serialized here is the message itself, to the
//! letter: nothing is added on the way to the merchant.

mod drop_shipment;
mod identifier;
mod inbound;
mod outbound;
mod receipt;
mod reference;
pub mod sample;
mod schema;
mod unit_received;

pub use drop_shipment::{
    DropShipment, DropShipmentCancellation, DropShipmentConfirmation, DropShipmentKind,
    DropShipmentPartialCancellation,
};
pub use identifier::{Identifier, identifier};
pub use inbound::{InboundAsn, InboundHeader, InboundLine, Location};
pub use outbound::{
    AsnPart, AsnStatus, MAX_MESSAGE_BYTES, MAX_MESSAGE_LINES, OutboundAsn, OutboundHeader,
    OutboundShipment, OutboundShipmentRequest, ShipmentChange, ShipmentType,
};
pub use receipt::{ExpectedUnit, InventoryReceipt, ReceiptBatch, ReceiptsRequest};
pub use reference::{Condition, Reference, ReferenceType};
pub use schema::message_schema;
pub use unit_received::UnitReceived;

use std::ops::RangeInclusive;

/// The length of an identifier, in characters.
const IDENTIFIER: RangeInclusive<usize> = 1..=255;
/// The length of an optional word: senders write an empty string for "none".
const WORD: RangeInclusive<usize> = 0..=255;
/// As for orders: a thousand of the largest still fit into 64 bits.
const AMOUNT: RangeInclusive<i64> = 0..=1_000_000_000_000_000;
const MAX_NOTE: usize = 5_000;

#[cfg(test)]
mod tests;
