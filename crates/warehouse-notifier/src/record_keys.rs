//! The keys by which staff find a record: ASN numbers, tracking numbers and order identifiers.

use std::collections::BTreeSet;

use api::warehouse::RecordKind;
use domain::json::Digest;
use domain::warehouse::{
    DropShipment, InboundHeader, InboundLine, InventoryReceipt, OutboundShipment, Reference,
};

/// A merchant and the identifier of one of its orders or RMAs.
pub(crate) type OrderKey = (String, String);

/// A record. Its number is an ASN number, or the order identifier of a drop shipment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    pub(crate) kind: RecordKind,
    pub(crate) number: String,
}

/// A key by which records are found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    AsnNumber(String),
    TrackingNumber(String),
    /// The identifier of an order or an RMA.
    OrderIdentifier(String),
}

/// Keys with their records, sorted.
pub(crate) type RecordKeys = BTreeSet<(Record, Key)>;

impl Key {
    /// The digest that is stored, because a tracking number may be too long for an index.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of_text(&match self {
            Self::AsnNumber(number) => format!("asn_number:{number}"),
            Self::TrackingNumber(number) => format!("tracking_number:{number}"),
            Self::OrderIdentifier(identifier) => format!("order_identifier:{identifier}"),
        })
    }
}

/// The orders and RMAs of a merchant among the keys of its records.
pub(crate) fn orders(merchant: &str, keys: &RecordKeys) -> impl Iterator<Item = OrderKey> {
    keys.iter().filter_map(move |(_, key)| match key {
        Key::OrderIdentifier(identifier) => Some((merchant.to_string(), identifier.clone())),
        Key::AsnNumber(_) | Key::TrackingNumber(_) => None,
    })
}

/// The keys of one record.
struct Collector {
    record: Record,
    keys: RecordKeys,
}

impl Collector {
    fn new(kind: RecordKind, number: impl ToString) -> Self {
        Self { record: Record { kind, number: number.to_string() }, keys: RecordKeys::new() }
    }

    fn add(&mut self, key: fn(String) -> Key, value: Option<impl ToString>) {
        if let Some(value) = value.map(|value| value.to_string()).filter(|it| !it.is_empty()) {
            self.keys.insert((self.record.clone(), key(value)));
        }
    }

    fn add_reference(&mut self, reference: Option<&Reference>) {
        self.add(Key::OrderIdentifier, reference.map(|it| &it.identifier));
        self.add(Key::OrderIdentifier, reference.and_then(|it| it.alternate_identifier.as_ref()));
    }
}

pub(crate) fn of_inbound_asn(header: &InboundHeader, lines: &[InboundLine]) -> RecordKeys {
    let mut keys = Collector::new(RecordKind::InboundAsn, &header.asn_number);
    keys.add(Key::AsnNumber, Some(&header.asn_number));
    keys.add(Key::OrderIdentifier, header.shipment_identifier.as_ref());
    keys.add_reference(header.reference.as_ref());
    keys.add(Key::TrackingNumber, header.unit_fields.tracking_number.as_ref());
    for line in lines {
        keys.add_reference(line.reference.as_ref());
        keys.add(Key::TrackingNumber, line.detail.unit_fields.tracking_number.as_ref());
    }
    keys.keys
}

/// The keys of a receipt, which belong to its ASN. Keys that the ASN or the line has are left out: they were
/// stored with the ASN.
pub(crate) fn of_receipt(
    receipt: &InventoryReceipt,
    header: &InboundHeader,
    line: &InboundLine,
) -> RecordKeys {
    &all_of_receipt(receipt) - &of_inbound_asn(header, std::slice::from_ref(line))
}

/// The keys of a receipt, also those that its ASN has.
pub(crate) fn all_of_receipt(receipt: &InventoryReceipt) -> RecordKeys {
    let mut keys = Collector::new(RecordKind::InboundAsn, &receipt.asn_number);
    keys.add(Key::OrderIdentifier, receipt.shipment_identifier.as_ref());
    keys.add_reference(receipt.reference.as_ref());
    keys.add(Key::TrackingNumber, receipt.tracking_number.as_ref());
    keys.keys
}

pub(crate) fn of_outbound_shipment(shipment: &OutboundShipment) -> RecordKeys {
    let header = &shipment.header;
    let mut keys = Collector::new(RecordKind::OutboundShipment, &header.asn_number);
    keys.add(Key::AsnNumber, Some(&header.asn_number));
    keys.add(Key::OrderIdentifier, Some(&header.shipment_identifier));
    keys.add(Key::TrackingNumber, header.tracking_number.as_ref());
    for carton in &shipment.cartons {
        keys.add_reference(carton.reference.as_ref());
    }
    keys.keys
}

pub(crate) fn of_drop_shipment(shipment: &DropShipment) -> RecordKeys {
    let mut keys = Collector::new(RecordKind::DropShipment, &shipment.order);
    keys.add(Key::OrderIdentifier, Some(&shipment.order));
    keys.add(Key::TrackingNumber, shipment.tracking_number.as_ref());
    keys.keys
}
