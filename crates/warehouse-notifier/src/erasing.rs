//! Consumes `returns.erased`: erases the shopper's data in shipments, receipts and their messages.

use std::collections::HashSet;

use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::erasure::{ErasureConfirmed, ErasureCounts, ReturnsErased, erase};
use messaging::{Envelope, HandleError, Handler, Outbox, erase_events};
use platform::database::DatabaseError;
use platform::{Clock, Service as _};
use serde_json::Value;

use crate::App;
use crate::record_keys::{Key, RecordKind};
use crate::store::erasures;

pub(crate) struct Erasures {
    pub(crate) outbox: Outbox,
    pub(crate) clock: Clock,
}

impl Handler for Erasures {
    type Event = ReturnsErased;

    /// Each event may be about a hundred orders.
    const MAX_BATCH_COST: usize = 1;

    fn cost(_: &ReturnsErased) -> usize {
        1
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ReturnsErased>],
    ) -> Result<(), HandleError> {
        for event in events {
            let counts = erase_records(conn, &event.data).await?;
            let ReturnsErased { erasure_id, batch, merchant, .. } = &event.data;
            let confirmed = ErasureConfirmed {
                erasure_id: *erasure_id,
                batch: *batch,
                merchant: merchant.clone(),
                service: App::NAME.to_owned(),
                counts,
                kept_returns: Vec::new(),
            };
            self.outbox.append(conn, self.clock.now(), [confirmed]).await?;
            tracing::info!(
                erasure.id = %erasure_id, batch, %merchant, records = counts.records,
                "erased a shopper's data"
            );
        }
        Ok(())
    }
}

async fn erase_records(
    conn: &mut AsyncPgConnection,
    event: &ReturnsErased,
) -> Result<ErasureCounts, DatabaseError> {
    let (merchant, orders) = (&event.merchant, &event.order_identifiers);
    let names: HashSet<_> =
        orders.iter().chain(&event.rma_identifiers).map(String::as_str).collect();
    let digests: Vec<_> =
        names.iter().map(|name| Key::OrderIdentifier((*name).to_owned()).digest()).collect();
    let numbers = erasures::numbers(conn, merchant, &digests).await?;
    let of_kind = |kind: RecordKind| -> Vec<String> {
        numbers.iter().filter(|(it, _)| *it == kind).map(|(_, number)| number.clone()).collect()
    };
    let erase_named = |value: &mut Value| erase_if_named(value, &names);

    let shipments = of_kind(RecordKind::OutboundShipment);
    let asns = of_kind(RecordKind::InboundAsn);
    let mut records = erasures::erase_shipments(conn, merchant, &shipments, erase_named).await?;
    records += erasures::erase_receipts(conn, merchant, &asns, erase_named).await?;
    let keys = [("asn", &shipments), ("inbound_asn", &asns)];
    let keys = keys.into_iter().flat_map(|(kind, numbers)| ordering_keys(kind, numbers));
    let keys: Vec<_> = keys.collect();
    let mut deliveries = Deliveries::erase(conn, merchant, &keys, erase_named).await?;
    deliveries += Deliveries::erase(conn, merchant, &ordering_keys("order", orders), erase).await?;
    let subjects: Vec<_> =
        event.rma_identifiers.iter().map(|name| format!("{merchant}/{name}")).collect();
    let events = erase_events(conn, &subjects, erase).await?;
    Ok(ErasureCounts { records, events, deliveries })
}

fn ordering_keys(kind: &str, numbers: &[String]) -> Vec<String> {
    numbers.iter().map(|number| format!("{kind}:{number}")).collect()
}

/// Erases a shipment or receipt that is about one of these orders or returns. Others of the same ASN, and
/// shipments of many orders to a store, belong to no single shopper.
fn erase_if_named(value: &mut Value, names: &HashSet<&str>) {
    let is_named = |pointer| match value.pointer(pointer) {
        Some(Value::String(text)) => names.contains(text.as_str()),
        Some(Value::Number(number)) => names.contains(number.to_string().as_str()),
        _ => false,
    };
    let pointers =
        ["/shipment_identifier", "/reference/identifier", "/reference/alternate_identifier"];
    if pointers.into_iter().any(is_named) {
        erase(value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_records_of_the_shopper_are_erased() {
        let names = HashSet::from(["1001", "7"]);
        let erased = |mut value: Value| {
            erase_if_named(&mut value, &names);
            value["reject_reason"].clone()
        };
        for named in [
            json!({ "reference": { "identifier": "1001" }, "reject_reason": "x" }),
            json!({ "reference": { "identifier": 7 }, "reject_reason": "x" }),
            json!({ "shipment_identifier": "1001", "reject_reason": "x" }),
        ] {
            assert_eq!(erased(named), "erased");
        }
        assert_eq!(
            erased(json!({ "reference": { "identifier": "2" }, "reject_reason": "x" })),
            "x"
        );
    }
}
