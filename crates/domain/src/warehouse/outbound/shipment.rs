//! A shipment and the message that reports it.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::carton::{MAX_UNITS, OutboundCarton};
use super::header::OutboundHeader;
use super::reported::ReportedHeader;
use super::shipment_type::ShipmentType;
use crate::json::{Document, Object, ValidationError, array, object, variant};
use crate::warehouse::limits::MAX_CARTONS;
use crate::warehouse::record::Warehouses;

/// The message to the merchant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundAsn {
    #[serde(flatten)]
    pub header: OutboundHeader,
    /// Boxes and pallets. A carton that was split is in two messages.
    #[schema(min_items = 1)]
    pub cartons: Vec<OutboundCarton>,
}

/// The report of a shipment: the outbound ASN and its type.
#[derive(Debug, Clone, PartialEq, ToSchema)]
pub struct OutboundShipment {
    pub shipment_type: ShipmentType,
    #[serde(flatten)]
    #[schema(value_type = ReportedHeader)]
    pub header: OutboundHeader,
    #[schema(min_items = 1, max_items = 10_000)]
    pub cartons: Vec<OutboundCarton>,
}

impl OutboundShipment {
    /// Reads a report. Its locations can name warehouses of the merchant.
    pub fn read(document: &Document, warehouses: &Warehouses) -> Result<Self, ValidationError> {
        document.read(object(|shipment| Self::read_object(shipment, warehouses)))
    }

    fn read_object(shipment: &Object<'_>, warehouses: &Warehouses) -> Option<Self> {
        let mut lines = HashSet::new();
        let shipment_type = shipment.required("shipment_type", variant);
        let header = OutboundHeader::read(shipment, shipment_type, warehouses);
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
