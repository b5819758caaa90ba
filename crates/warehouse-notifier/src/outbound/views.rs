//! Outbound shipments as callers see them.

use api::warehouse::{MessageView, ShipmentDetails, ShipmentSummary, ShipmentView};
use chrono::{DateTime, Utc};
use domain::warehouse::{AsnPart, OutboundHeader};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::store::outbound::StoredShipment;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShipmentPage {
    /// Sorted by merchant and number.
    pub(super) outbound_shipments: Vec<ShipmentSummary>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

/// The view of a shipment that was just reported.
pub(crate) fn show_new(
    shipment_type: &str,
    header: &OutboundHeader,
    parts: &[AsnPart],
    created_at: DateTime<Utc>,
) -> ShipmentView {
    let message =
        |part: &AsnPart| MessageView { asn_number: part.asn_number.clone(), units: part.units };
    ShipmentView {
        asn_number: header.asn_number.clone(),
        shipment_type: shipment_type.to_owned(),
        status: header.status,
        ship_date: header.ship_date,
        shipment_identifier: header.shipment_identifier.clone(),
        channel: header.channel.clone(),
        units: parts.iter().map(|part| part.units).sum(),
        messages: parts.iter().map(message).collect(),
        created_at,
        updated_at: created_at,
    }
}

pub(crate) fn show_stored(stored: &StoredShipment, parts: &[AsnPart]) -> ShipmentView {
    let StoredShipment { shipment_type, header, created_at, updated_at, .. } = stored;
    ShipmentView { updated_at: *updated_at, ..show_new(shipment_type, header, parts, *created_at) }
}

pub(crate) fn show_details(stored: &StoredShipment, parts: &[AsnPart]) -> ShipmentDetails {
    let header = &stored.header;
    let shipment = show_stored(stored, parts);
    ShipmentDetails { shipment, from: json!(header.from), to: json!(header.to) }
}

impl From<StoredShipment> for ShipmentSummary {
    fn from(stored: StoredShipment) -> Self {
        let StoredShipment { merchant, asn_number, shipment_type, header, units, .. } = stored;
        Self {
            merchant,
            asn_number,
            shipment_type,
            status: header.status,
            ship_date: header.ship_date,
            units,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}
