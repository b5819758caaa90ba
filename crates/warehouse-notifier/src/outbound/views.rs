//! Outbound shipments as callers see them.

use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::warehouse::{AsnPart, AsnStatus, OutboundHeader};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::store::outbound::StoredShipment;

/// A shipment and the messages that it is split into.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ShipmentView {
    #[schema(example = "ASN-1001")]
    asn_number: String,
    #[schema(example = "freight")]
    shipment_type: String,
    status: AsnStatus,
    ship_date: DateTime<Utc>,
    shipment_identifier: String,
    channel: String,
    units: usize,
    /// In order of delivery.
    messages: Vec<MessageView>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

/// A shipment with its parties. The responses to reports leave them out: they are stored, and must have no personal
/// data.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShipmentDetails {
    #[serde(flatten)]
    shipment: ShipmentView,
    #[schema(value_type = Object)]
    from: Value,
    /// With the address.
    #[schema(value_type = Object)]
    to: Value,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct MessageView {
    /// The shipment's number, with a suffix if the shipment has several messages.
    asn_number: String,
    units: usize,
}

/// A shipment in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShipmentSummary {
    merchant: MerchantId,
    asn_number: String,
    shipment_type: String,
    status: AsnStatus,
    ship_date: DateTime<Utc>,
    units: i32,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShipmentPage {
    /// Sorted by merchant and number.
    pub(super) outbound_shipments: Vec<ShipmentSummary>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

impl ShipmentView {
    /// The view of a shipment that was just reported.
    pub(crate) fn new(
        shipment_type: &str,
        header: &OutboundHeader,
        parts: &[AsnPart],
        created_at: DateTime<Utc>,
    ) -> Self {
        let message =
            |part: &AsnPart| MessageView { asn_number: part.asn_number.clone(), units: part.units };
        Self {
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

    /// The view of a stored shipment.
    pub(crate) fn from_stored(stored: &StoredShipment, parts: &[AsnPart]) -> Self {
        let StoredShipment { shipment_type, header, created_at, updated_at, .. } = stored;
        Self { updated_at: *updated_at, ..Self::new(shipment_type, header, parts, *created_at) }
    }
}

impl ShipmentDetails {
    pub(crate) fn new(stored: StoredShipment, parts: &[AsnPart]) -> Self {
        let shipment = ShipmentView::from_stored(&stored, parts);
        Self { shipment, from: json!(stored.header.from), to: json!(stored.header.to) }
    }
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
