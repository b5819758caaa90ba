//! The header, which all messages of a shipment have in common.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::receiver::{Receiver, Sender};
use super::shipment_type::ShipmentType;
use super::status::AsnStatus;
use crate::json::{
    Document, FieldError, Object, ValidationError, object, parsed, text, timestamp, variant,
};
use crate::warehouse::identifier::plain_asn_number;
use crate::warehouse::limits::{IDENTIFIER, OPTIONAL_TEXT};
use crate::warehouse::record::Warehouses;

/// An outbound ASN without its cartons.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundHeader {
    pub from: Sender,
    pub to: Receiver,
    /// Unique. The messages of a split shipment have the suffixes `_1`, `_2` and so on.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,255}$")]
    pub asn_number: String,
    /// The purpose of the inventory, for example RTV or Outlet.
    #[schema(min_length = 1, max_length = 255)]
    pub channel: String,
    /// The number of an order or an RA, or another reference.
    #[schema(min_length = 1, max_length = 255)]
    pub shipment_identifier: String,
    /// The first scanned number. Null for stock transfers, like the next two fields.
    #[serialize_always]
    pub tracking_number: Option<String>,
    #[schema(max_length = 255)]
    #[serialize_always]
    pub carrier: Option<String>,
    #[serialize_always]
    pub carrier_payment_type: Option<PaymentType>,
    /// The actual or planned ship date.
    pub ship_date: DateTime<Utc>,
    pub status: AsnStatus,
    pub details_type: DetailsType,
    /// The bill of lading of a freight shipment.
    #[schema(max_length = 255)]
    pub bol_number: Option<String>,
    pub timestamp: Option<DateTime<Utc>>,
}

/// The payer of the carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PaymentType {
    Prepaid,
    Collect,
}

/// The content of a detail line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DetailsType {
    Unit,
}

impl OutboundHeader {
    pub(super) fn read(
        asn: &Object<'_>,
        shipment: Option<ShipmentType>,
        warehouses: &Warehouses,
    ) -> Option<Self> {
        let from = asn.required("from", object(|from| Sender::read(from, warehouses)));
        let to = asn.required("to", object(|to| Receiver::read(to, shipment, warehouses)));
        let asn_number = asn.required("asn_number", parsed(IDENTIFIER, plain_asn_number));
        let channel = asn.required("channel", text(IDENTIFIER));
        let shipment_identifier = asn.required("shipment_identifier", text(IDENTIFIER));
        let tracking_number = asn.optional("tracking_number", text(0..=usize::MAX));
        let carrier = asn.optional("carrier", text(OPTIONAL_TEXT));
        let carrier_payment_type = asn.optional("carrier_payment_type", variant);
        if shipment == Some(ShipmentType::StockTransfer) {
            for key in ["tracking_number", "carrier", "carrier_payment_type"] {
                if asn.has(key) {
                    asn.invalid(key, "must be null for a stock transfer");
                }
            }
        }
        let ship_date = asn.required("ship_date", timestamp);
        let status = asn.required("status", variant);
        let details_type = asn.required("details_type", variant);
        let bol_number = asn.optional("bol_number", text(OPTIONAL_TEXT));
        let timestamp = asn.optional("timestamp", timestamp);
        Some(Self {
            from: from?,
            to: to?,
            asn_number: asn_number?,
            channel: channel?,
            shipment_identifier: shipment_identifier?,
            tracking_number: tracking_number?,
            carrier: carrier?,
            carrier_payment_type: carrier_payment_type?,
            ship_date: ship_date?,
            status: status?,
            details_type: details_type?,
            bol_number: bol_number?,
            timestamp: timestamp?,
        })
    }

    /// The JSON of the message with this number and these cartons.
    pub fn body(&self, number: &str, cartons: &str) -> serde_json::Result<String> {
        let header = Self { asn_number: number.to_owned(), ..self.clone() };
        let mut body = serde_json::to_string(&header)?;
        body.pop();
        Ok(body + ",\"cartons\":" + cartons + "}")
    }

    /// Applies a change, and returns whether it changed anything.
    pub fn change(
        &mut self,
        change: ShipmentChange,
        now: DateTime<Utc>,
    ) -> Result<bool, ValidationError> {
        let mut errors = Vec::new();
        let status = change.status.filter(|status| *status != self.status);
        let ship_date = change.ship_date.filter(|date| *date != self.ship_date);
        let current = self.status.as_str();
        if let Some(next) = status
            && !self.status.can_become(next)
        {
            let detail = format!("a shipment that is {current} cannot become {}", next.as_str());
            errors.push(FieldError::invalid("$.status", detail));
        }
        if ship_date.is_some() && self.status.is_final() {
            let detail = format!("the date of a shipment that is {current} cannot change");
            errors.push(FieldError::invalid("$.ship_date", detail));
        }
        if !errors.is_empty() {
            return Err(ValidationError { errors, omitted: 0 });
        }
        let changed = status.is_some() || ship_date.is_some();
        self.status = status.unwrap_or(self.status);
        self.ship_date = ship_date.unwrap_or(self.ship_date);
        if changed {
            self.timestamp = Some(now);
        }
        Ok(changed)
    }
}

/// A change of a reported shipment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1)]
pub struct ShipmentChange {
    #[schema(nullable = false)]
    pub ship_date: Option<DateTime<Utc>>,
    #[schema(nullable = false)]
    pub status: Option<AsnStatus>,
}

impl ShipmentChange {
    pub fn read(document: &Document) -> Result<Self, ValidationError> {
        document.read(object(|change| {
            change.reject_unknown(&["ship_date", "status"]);
            let ship_date = change.optional("ship_date", timestamp);
            let status = change.optional("status", variant);
            if !change.has("ship_date") && !change.has("status") {
                change.missing("status");
            }
            Some(Self { ship_date: ship_date?, status: status? })
        }))
    }
}
