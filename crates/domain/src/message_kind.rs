//! The kinds of message that Backhaul sends to merchants, as one table.
//!
//! A kind determines the queue, the default path and the versions of its messages. Merchants and
//! operators rely on these values: a row never changes, except that it gets a further version.
//!
//! See docs/decisions/message-versions.md.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The default path of the exchange variants endpoint. Backhaul requests variants; it does not
/// deliver them, so they are not a message kind.
pub const VARIANTS_PATH: &str = "/sku/{variant_identifier}/variants";
/// The versions of requests for variants.
pub const VARIANTS_VERSIONS: &[MessageVersion] = &[MessageVersion(1)];

/// A version of the messages of one kind: their form, and the value of their version header. An endpoint
/// chooses its version, so that a merchant gets new fields only when it asks for them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
pub struct MessageVersion(pub u16);

impl fmt::Display for MessageVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

crate::words! {
    #[strum(parse_err_ty = UnknownMessageKind, parse_err_fn = UnknownMessageKind::new)]
    pub enum MessageKind as "kebab-case" {
        Rma,
        ExchangeOrder,
        LabelRequest,
        OutboundAsn,
        InventoryReceipt,
        DropShipmentConfirmation,
        DropShipmentCancellation,
        DropShipmentPartialCancellation,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown message kind {0:?}")]
pub struct UnknownMessageKind(String);

impl UnknownMessageKind {
    fn new(name: &str) -> Self {
        Self(name.to_owned())
    }
}

struct Row {
    queue: &'static str,
    dead_letter_queue: &'static str,
    path: &'static str,
    versions: &'static [MessageVersion],
}

macro_rules! row {
    ($name:literal, $path:literal, [$($version:literal),+]) => {
        Row {
            queue: concat!("notify.", $name),
            dead_letter_queue: concat!("notify.", $name, ".dead"),
            path: $path,
            versions: &[$(MessageVersion($version)),+],
        }
    };
}

impl MessageKind {
    pub const ALL: [Self; 8] = [
        Self::Rma,
        Self::ExchangeOrder,
        Self::LabelRequest,
        Self::OutboundAsn,
        Self::InventoryReceipt,
        Self::DropShipmentConfirmation,
        Self::DropShipmentCancellation,
        Self::DropShipmentPartialCancellation,
    ];

    /// Whether each message has the complete state of its subject, so that a newer message of the same ordering
    /// key supersedes it. Messages of the other kinds report separate facts.
    pub fn has_complete_state(self) -> bool {
        match self {
            Self::Rma | Self::OutboundAsn => true,
            Self::ExchangeOrder
            | Self::LabelRequest
            | Self::InventoryReceipt
            | Self::DropShipmentConfirmation
            | Self::DropShipmentCancellation
            | Self::DropShipmentPartialCancellation => false,
        }
    }

    const fn row(self) -> Row {
        match self {
            Self::Rma => row!("rma", "/rmas", [3, 4]),
            Self::ExchangeOrder => row!("exchange-order", "/exchange_orders", [2]),
            Self::LabelRequest => row!("label-request", "/label_requests", [1]),
            Self::OutboundAsn => row!("outbound-asn", "/outbound_asn", [1]),
            Self::InventoryReceipt => row!("inventory-receipt", "/inventory_receipt", [1]),
            Self::DropShipmentConfirmation => {
                row!("drop-shipment-confirmation", "/drop_shipment_confirmation", [1])
            }
            Self::DropShipmentCancellation => {
                row!("drop-shipment-cancellation", "/drop_shipment_cancellation", [1])
            }
            Self::DropShipmentPartialCancellation => row!(
                "drop-shipment-partial-cancellation",
                "/drop_shipment_partial_cancellation",
                [1]
            ),
        }
    }

    /// The queue of messages to deliver.
    pub const fn queue(self) -> &'static str {
        self.row().queue
    }

    /// The queue of messages whose attempts all failed.
    pub const fn dead_letter_queue(self) -> &'static str {
        self.row().dead_letter_queue
    }

    /// The path of the merchant's endpoint, unless configured otherwise.
    pub const fn default_path(self) -> &'static str {
        self.row().path
    }

    /// The supported versions, oldest first. The first is the contract's.
    pub const fn versions(self) -> &'static [MessageVersion] {
        self.row().versions
    }

    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::MessageKind;

    #[test]
    fn the_table_never_changes() {
        let table: String = MessageKind::ALL
            .into_iter()
            .map(|kind| {
                let queue = kind.queue();
                assert_eq!(kind.dead_letter_queue(), format!("{queue}.dead"));
                let versions = kind.versions().iter().map(ToString::to_string).collect::<Vec<_>>();
                format!("{kind} | {queue} | {} | {}\n", kind.default_path(), versions.join(", "))
            })
            .collect();
        expect_test::expect![[r#"
            rma | notify.rma | /rmas | 3, 4
            exchange-order | notify.exchange-order | /exchange_orders | 2
            label-request | notify.label-request | /label_requests | 1
            outbound-asn | notify.outbound-asn | /outbound_asn | 1
            inventory-receipt | notify.inventory-receipt | /inventory_receipt | 1
            drop-shipment-confirmation | notify.drop-shipment-confirmation | /drop_shipment_confirmation | 1
            drop-shipment-cancellation | notify.drop-shipment-cancellation | /drop_shipment_cancellation | 1
            drop-shipment-partial-cancellation | notify.drop-shipment-partial-cancellation | /drop_shipment_partial_cancellation | 1
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn only_names_of_kinds_are_parsed() {
        for kind in MessageKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<MessageKind>(&json).unwrap(), kind);
        }
        for unknown in ["", "RMA", "notify.rma", "rma ", "variants"] {
            assert!(unknown.parse::<MessageKind>().is_err(), "{unknown}");
        }
    }
}
