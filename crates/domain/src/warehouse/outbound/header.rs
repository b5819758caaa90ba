//! What every message of a shipment says, whichever units it holds.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::identifier::{Identifier, identifier};
use super::super::{IDENTIFIER, WORD};
use super::ShipmentType;
use super::status::AsnStatus;
use crate::json::{
    Document, Field, FieldError, Object, ValidationError, object, one_of, parsed, text, timestamp,
};

/// Everything of an outbound ASN but its cartons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutboundHeader {
    pub from: Sender,
    pub to: Receiver,
    /// Unique; a message of several has `_1`, `_2` and so on behind the shipment's number.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,255}$")]
    pub asn_number: String,
    /// What the inventory is fulfilled for, like RTV or Outlet.
    #[schema(min_length = 1, max_length = 255)]
    pub channel: String,
    /// The number of an order or an RA, or another reference.
    #[schema(min_length = 1, max_length = 255)]
    pub shipment_identifier: String,
    /// The first one scanned; null for stock transfers, as are the next two.
    pub tracking_number: Option<String>,
    #[schema(max_length = 255)]
    pub carrier: Option<String>,
    pub carrier_payment_type: Option<PaymentType>,
    /// When it was or will be shipped.
    pub ship_date: DateTime<Utc>,
    pub status: AsnStatus,
    pub details_type: DetailsType,
    /// The bill of lading of a freight shipment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub bol_number: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sender {
    #[schema(min_length = 1, max_length = 255)]
    pub identifier: String,
    #[serde(rename = "type")]
    pub kind: LocationType,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receiver {
    /// Of a vendor a number, which may be written as a string.
    pub identifier: Identifier,
    #[serde(rename = "type")]
    pub kind: LocationType,
    pub address: ReceiverAddress,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiverAddress {
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub company: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    pub street: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub street2: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    pub city: String,
    #[schema(min_length = 1, max_length = 255)]
    pub state: String,
    #[schema(min_length = 1, max_length = 32)]
    pub zip: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LocationType {
    Warehouse,
    Store,
}

const LOCATIONS: [(&str, LocationType); 2] =
    [("warehouse", LocationType::Warehouse), ("store", LocationType::Store)];

/// Who pays the carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PaymentType {
    Prepaid,
    Collect,
}

const PAYMENTS: [(&str, PaymentType); 2] =
    [("prepaid", PaymentType::Prepaid), ("collect", PaymentType::Collect)];

/// What a detail line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DetailsType {
    Unit,
}

impl OutboundHeader {
    pub(super) fn read(asn: &Object<'_>, shipment: Option<ShipmentType>) -> Option<Self> {
        let from = asn.required("from", object(Sender::read));
        let to = asn.required("to", object(|to| Receiver::read(to, shipment)));
        let asn_number = asn.required("asn_number", parsed(IDENTIFIER, asn_number));
        let channel = asn.required("channel", text(IDENTIFIER));
        let shipment_identifier = asn.required("shipment_identifier", text(IDENTIFIER));
        let tracking_number = asn.optional("tracking_number", text(0..=usize::MAX));
        let carrier = asn.optional("carrier", text(WORD));
        let carrier_payment_type = asn.optional("carrier_payment_type", one_of(&PAYMENTS));
        if shipment == Some(ShipmentType::StockTransfer) {
            for key in ["tracking_number", "carrier", "carrier_payment_type"] {
                if asn.has(key) {
                    asn.invalid(key, "must be null for a stock transfer");
                }
            }
        }
        let ship_date = asn.required("ship_date", timestamp);
        let status = asn.required("status", one_of(&AsnStatus::WORDS));
        let details_type = asn.required("details_type", one_of(&[("unit", DetailsType::Unit)]));
        let bol_number = asn.optional("bol_number", text(WORD));
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

    /// The message that holds these cartons, written out as JSON, under this number.
    pub fn body(&self, number: &str, cartons: &str) -> serde_json::Result<String> {
        let own = Self { asn_number: number.to_owned(), ..self.clone() };
        let mut body = serde_json::to_string(&own)?;
        body.pop();
        Ok(body + ",\"cartons\":" + cartons + "}")
    }

    /// Makes a change, and says whether it changed anything.
    pub fn change(
        &mut self,
        change: ShipmentChange,
        now: DateTime<Utc>,
    ) -> Result<bool, ValidationError> {
        let mut errors = Vec::new();
        let status = change.status.filter(|status| *status != self.status);
        let ship_date = change.ship_date.filter(|date| *date != self.ship_date);
        let word = self.status.as_str();
        if let Some(next) = status
            && !self.status.may_become(next)
        {
            let detail = format!("a shipment that is {word} cannot become {}", next.as_str());
            errors.push(FieldError::invalid("$.status", detail));
        }
        if ship_date.is_some() && self.status.is_final() {
            let detail = format!("a shipment that is {word} keeps its date");
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

/// What may change after a shipment was reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
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
            let status = change.optional("status", one_of(&AsnStatus::WORDS));
            if !change.has("ship_date") && !change.has("status") {
                change.missing("status");
            }
            Some(Self { ship_date: ship_date?, status: status? })
        }))
    }
}

impl Sender {
    fn read(from: &Object<'_>) -> Option<Self> {
        let identifier = from.required("identifier", text(IDENTIFIER));
        let kind = from.required("type", one_of(&LOCATIONS));
        Some(Self { identifier: identifier?, kind: kind? })
    }
}

impl Receiver {
    fn read(to: &Object<'_>, shipment: Option<ShipmentType>) -> Option<Self> {
        let identifier = match shipment {
            Some(ShipmentType::Vendor) => to.required("identifier", vendor),
            _ => to.required("identifier", text(IDENTIFIER)).map(Identifier::Text),
        };
        let kind = to.required("type", one_of(&LOCATIONS));
        let address = to.required("address", object(ReceiverAddress::read));
        Some(Self { identifier: identifier?, kind: kind?, address: address? })
    }
}

impl ReceiverAddress {
    fn read(address: &Object<'_>) -> Option<Self> {
        let name = address.required("name", text(IDENTIFIER));
        let company = address.optional("company", text(WORD));
        let street = address.required("street", text(IDENTIFIER));
        let street2 = address.optional("street2", text(WORD));
        let city = address.required("city", text(IDENTIFIER));
        let state = address.required("state", text(IDENTIFIER));
        let zip = address.required("zip", text(1..=32));
        Some(Self {
            name: name?,
            company: company?,
            street: street?,
            street2: street2?,
            city: city?,
            state: state?,
            zip: zip?,
        })
    }
}

/// The number of a vendor.
fn vendor(field: Field<'_>) -> Option<Identifier> {
    let vendor = identifier(field)?;
    let numeric = match &vendor {
        Identifier::Number(number) => *number >= 0,
        Identifier::Text(text) => text.bytes().all(|byte| byte.is_ascii_digit()),
    };
    if numeric { Some(vendor) } else { field.invalid("must be the number of a vendor") }
}

fn asn_number(text: &str) -> Result<String, &'static str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("must be letters, digits, hyphens and underscores")
    }
}
