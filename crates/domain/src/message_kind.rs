//! The kinds of message that Backhaul sends to a merchant, as data in one table.
//!
//! A kind decides the queue a message travels through, where the merchant receives it unless
//! set otherwise, and the version header it carries. The names are part of the contract with
//! operators and merchants: a row never changes, new kinds are added below.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};

/// Where exchange variants are read from, unless the merchant set another path. Variants are
/// asked for, not delivered, so they are no kind of message.
pub const VARIANTS_PATH: &str = "/sku/{variant_identifier}/variants";
pub const VARIANTS_API_VERSION: &str = "1";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MessageKind {
    Rma,
    ExchangeOrder,
    OutboundAsn,
    InventoryReceipt,
    DropShipmentConfirmation,
    DropShipmentCancellation,
    DropShipmentPartialCancellation,
}

/// One row of the table.
struct Row {
    queue: &'static str,
    dead_letter_queue: &'static str,
    path: &'static str,
    api_version: &'static str,
}

const fn row(
    queue: &'static str,
    dead_letter_queue: &'static str,
    path: &'static str,
    api_version: &'static str,
) -> Row {
    Row { queue, dead_letter_queue, path, api_version }
}

impl MessageKind {
    pub const ALL: [Self; 7] = [
        Self::Rma,
        Self::ExchangeOrder,
        Self::OutboundAsn,
        Self::InventoryReceipt,
        Self::DropShipmentConfirmation,
        Self::DropShipmentCancellation,
        Self::DropShipmentPartialCancellation,
    ];

    const fn row(self) -> Row {
        match self {
            Self::Rma => row("notify.rma", "notify.rma.dead", "/rmas", "3"),
            Self::ExchangeOrder => {
                row("notify.exchange-order", "notify.exchange-order.dead", "/exchange_orders", "2")
            }
            Self::OutboundAsn => {
                row("notify.outbound-asn", "notify.outbound-asn.dead", "/outbound_asn", "1")
            }
            Self::InventoryReceipt => row(
                "notify.inventory-receipt",
                "notify.inventory-receipt.dead",
                "/inventory_receipt",
                "1",
            ),
            Self::DropShipmentConfirmation => row(
                "notify.drop-shipment-confirmation",
                "notify.drop-shipment-confirmation.dead",
                "/drop_shipment_confirmation",
                "1",
            ),
            Self::DropShipmentCancellation => row(
                "notify.drop-shipment-cancellation",
                "notify.drop-shipment-cancellation.dead",
                "/drop_shipment_cancellation",
                "1",
            ),
            Self::DropShipmentPartialCancellation => row(
                "notify.drop-shipment-partial-cancellation",
                "notify.drop-shipment-partial-cancellation.dead",
                "/drop_shipment_partial_cancellation",
                "1",
            ),
        }
    }

    /// The queue its messages travel through.
    pub const fn queue(self) -> &'static str {
        self.row().queue
    }

    /// Where its messages end when every attempt failed.
    pub const fn dead_letter_queue(self) -> &'static str {
        self.row().dead_letter_queue
    }

    /// Where a merchant receives it unless set otherwise.
    pub const fn default_path(self) -> &'static str {
        self.row().path
    }

    /// The value of the version header.
    pub const fn api_version(self) -> &'static str {
        self.row().api_version
    }

    /// The name used in settings, records and reports: the queue's, without `notify.`.
    pub fn name(self) -> &'static str {
        self.queue().trim_start_matches("notify.")
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MessageKind {
    type Err = UnknownMessageKind;

    fn from_str(name: &str) -> Result<Self, UnknownMessageKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownMessageKind(name.to_owned()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no kind of message")]
pub struct UnknownMessageKind(String);

impl Serialize for MessageKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for MessageKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

pub(crate) fn message_kind_schema() -> ObjectBuilder {
    let names = MessageKind::ALL.map(MessageKind::name);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names))
}

#[cfg(test)]
mod tests {
    use super::MessageKind;

    #[test]
    fn the_table_is_what_merchants_and_operators_were_told() {
        let table: String = MessageKind::ALL
            .into_iter()
            .map(|kind| {
                let (queue, dead) = (kind.queue(), kind.dead_letter_queue());
                assert_eq!(dead, format!("{queue}.dead"));
                format!("{kind} | {queue} | {} | {}\n", kind.default_path(), kind.api_version())
            })
            .collect();
        expect_test::expect![[r#"
            rma | notify.rma | /rmas | 3
            exchange-order | notify.exchange-order | /exchange_orders | 2
            outbound-asn | notify.outbound-asn | /outbound_asn | 1
            inventory-receipt | notify.inventory-receipt | /inventory_receipt | 1
            drop-shipment-confirmation | notify.drop-shipment-confirmation | /drop_shipment_confirmation | 1
            drop-shipment-cancellation | notify.drop-shipment-cancellation | /drop_shipment_cancellation | 1
            drop-shipment-partial-cancellation | notify.drop-shipment-partial-cancellation | /drop_shipment_partial_cancellation | 1
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn a_name_reads_back_as_its_kind_and_nothing_else_does() {
        for kind in MessageKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<MessageKind>(&json).unwrap(), kind);
        }
        for odd in ["", "RMA", "notify.rma", "rma ", "variants"] {
            assert!(odd.parse::<MessageKind>().is_err(), "{odd}");
        }
    }
}
