//! Warehouse operations and the messages that report them to merchants.
//!
//! A warehouse reports an [`OutboundShipment`], which becomes one or more outbound ASN messages. A
//! merchant announces units with an [`InboundAsn`], and the warehouse reports each arrival with an
//! [`InventoryReceipt`]. A [`DropShipment`] message confirms or cancels an order that the warehouse
//! ships to a shopper. Every type serializes to exactly the message of the contract.

mod address;
mod condition;
mod drop_shipment;
mod identifier;
mod inbound;
mod limits;
mod outbound;
mod receipt;
mod receipt_batch;
mod record;
mod reference;
pub mod sample;
mod schema;
mod unit_fields;
mod unit_received;

pub use address::ReceiverAddress;
pub use condition::Condition;
pub use drop_shipment::{
    DropShipment, DropShipmentCancellation, DropShipmentConfirmation, DropShipmentKind,
    DropShipmentPartialCancellation,
};
pub use identifier::{Identifier, identifier};
pub use inbound::{InboundAsn, InboundHeader, InboundLine, Location};
pub use limits::{MAX_MESSAGE_BYTES, MAX_MESSAGE_LINES};
pub use outbound::{
    AsnPart, AsnStatus, InboundFacts, OutboundAsn, OutboundHeader, OutboundShipment,
    ShipmentChange, ShipmentType,
};
pub use receipt::{ExpectedUnit, InventoryReceipt};
pub use receipt_batch::{ReceiptBatch, ReceiptsRequest};
pub use record::{MAX_WAREHOUSES, Warehouse, WarehouseSettings, Warehouses};
pub use reference::{Reference, ReferenceType};
pub use schema::message_schema;
pub use unit_received::UnitReceived;

#[cfg(test)]
mod tests;
