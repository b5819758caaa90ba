//! The outbound ASN, which reports that a shipment leaves the warehouse.
//!
//! [`OutboundShipment::read`] validates the report of a warehouse, [`OutboundShipment::split`] divides
//! the shipment into [`AsnPart`]s, and [`OutboundHeader::body`] writes the message of a part. A
//! shipment is split once: a later [`ShipmentChange`] keeps every unit in its message.

mod carton;
mod header;
mod inbound_facts;
mod receiver;
mod reported;
mod shipment;
mod shipment_type;
mod split;
mod status;

pub use header::{OutboundHeader, ShipmentChange};
pub use inbound_facts::InboundFacts;
pub use shipment::{OutboundAsn, OutboundShipment};
pub use shipment_type::ShipmentType;
pub use split::AsnPart;
pub use status::AsnStatus;
