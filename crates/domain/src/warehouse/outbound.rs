//! The outbound ASN: a shipment leaves the warehouse, told in as many messages as it needs.
//!
//! [`OutboundShipment::read`] checks what a warehouse reports, [`OutboundShipment::split`] cuts it
//! into [`AsnPart`]s, and [`OutboundHeader::body`] writes the message of a part. The cut is made once: a later
//! [`Change`] of the header leaves every unit in the message it was in.

mod carton;
mod header;
mod split;
mod status;

use carton::OutboundCarton;
pub use header::{OutboundHeader, ShipmentChange};
pub use split::{AsnPart, MAX_MESSAGE_BYTES, MAX_MESSAGE_LINES};
pub use status::AsnStatus;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::{Document, Object, ValidationError, array, object, one_of};

const MAX_CARTONS: usize = 10_000;
/// The units of one shipment.
const MAX_UNITS: usize = 100_000;

/// Why units travel, which decides how the destination is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShipmentType {
    /// To a place the merchant's stock transfers name; nobody is told of a carrier.
    StockTransfer,
    /// To another warehouse, by its external identifier.
    Freight,
    /// To a vendor, by its number.
    Vendor,
}

impl ShipmentType {
    const WORDS: [(&str, Self); 3] = [
        ("stock_transfer", Self::StockTransfer),
        ("freight", Self::Freight),
        ("vendor", Self::Vendor),
    ];

    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, it)| *it == self).map_or("", |(word, _)| word)
    }
}

/// The message as the merchant receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundAsn {
    #[serde(flatten)]
    pub header: OutboundHeader,
    /// One for each box or pallet; one that was cut in two is in two messages.
    #[schema(min_items = 1)]
    pub cartons: Vec<OutboundCarton>,
}

/// A shipment as a warehouse reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboundShipment {
    pub shipment_type: ShipmentType,
    pub header: OutboundHeader,
    pub cartons: Vec<OutboundCarton>,
}

/// The report of a shipment: the outbound ASN, and of which type it is.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the report is read field by field; this is its schema")]
pub struct OutboundShipmentRequest {
    shipment_type: ShipmentType,
    #[serde(flatten)]
    asn: OutboundAsn,
}

impl OutboundShipment {
    pub fn read(document: &Document) -> Result<Self, ValidationError> {
        document.read(object(Self::read_object))
    }

    fn read_object(shipment: &Object<'_>) -> Option<Self> {
        let mut lines = HashSet::new();
        let shipment_type = shipment.required("shipment_type", one_of(&ShipmentType::WORDS));
        let header = OutboundHeader::read(shipment, shipment_type);
        let carton = object(|carton| OutboundCarton::read(carton, &mut lines));
        let cartons = shipment.required("cartons", array(1..=MAX_CARTONS, carton));
        if lines.len() > MAX_UNITS {
            shipment.invalid("cartons", format!("must hold at most {MAX_UNITS} units"));
        }
        Some(Self { shipment_type: shipment_type?, header: header?, cartons: cartons? })
    }

    pub fn units(&self) -> usize {
        self.cartons.iter().map(|carton| carton.details.len()).sum()
    }
}
