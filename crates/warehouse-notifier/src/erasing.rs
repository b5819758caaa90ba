//! Consumes `returns.erased`: erases the shopper's data in shipments, receipts and their messages.

use std::collections::HashSet;

use api::warehouse::RecordKind;
use delivery::{Deliveries, ErasedMessages};
use diesel_async::AsyncPgConnection;
use domain::erasure::{ErasureCounts, ReturnsErased, erase, erase_report, is_report_about};
use messaging::{Envelope, HandleError, Handler, Outbox, erase_events};
use platform::database::DatabaseError;
use platform::{Clock, Service as _};
use serde_json::Value;

use crate::App;
use crate::record_keys::Key;
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
            let confirmed = event.data.confirmed_by(App::NAME, counts);
            self.outbox.append(conn, self.clock.now(), [confirmed]).await?;
            tracing::info!(
                erasure.id = %erasure_id, batch, %merchant, records = counts.records,
                "erased a shopper's data"
            );
        }
        Ok(())
    }
}

/// Erases what the warehouse reported before the erasure. A later report keeps the data, as a new snapshot of an
/// order does.
async fn erase_records(
    conn: &mut AsyncPgConnection,
    event: &ReturnsErased,
) -> Result<ErasureCounts, DatabaseError> {
    let merchant = &event.merchant;
    let orders = &event.order_identifiers;
    let names: HashSet<_> =
        orders.iter().chain(&event.rma_identifiers).map(String::as_str).collect();
    let digests: Vec<_> =
        names.iter().map(|name| Key::OrderIdentifier((*name).to_owned()).digest()).collect();
    let numbers = erasures::numbers(conn, merchant, &digests).await?;
    let of_kind = |kind: RecordKind| -> Vec<String> {
        numbers.iter().filter(|(it, _)| *it == kind).map(|(_, number)| number.clone()).collect()
    };
    let before = event.erased_at;
    let shipments = of_kind(RecordKind::OutboundShipment);
    let shipments = erasures::lock_shipments(conn, merchant, &shipments, before).await?;
    let asns = of_kind(RecordKind::InboundAsn);
    let is_named = |value: &Value| is_report_about(value, &names);
    let erase_named = |value: &mut Value| {
        if is_named(value) {
            erase_report(value);
        }
    };
    let mut records = erasures::erase_shipments(conn, merchant, &shipments, erase_named).await?;
    records += erasures::erase_asns(conn, merchant, &asns, before, is_named).await?;
    records += erasures::erase_receipts(conn, merchant, &asns, before, erase_named).await?;

    // A message about an older shipment repeats its address, also if the message is newer.
    let parts = erasures::parts(conn, merchant, &shipments).await?;
    let keys = ordering_keys("asn", shipments.iter().map(|it| &it.asn_number).chain(&parts));
    let messages = ErasedMessages { ordering_keys: &keys, before: None };
    let mut deliveries = Deliveries::erase(conn, merchant, messages, is_named, erase_named).await?;
    let units = erasures::received_units(conn, merchant, &asns).await?;
    let keys = ordering_keys("inbound_asn", asns.iter().chain(&units));
    let messages = ErasedMessages { ordering_keys: &keys, before: Some(before) };
    deliveries += Deliveries::erase(conn, merchant, messages, is_named, erase_named).await?;
    let keys = ordering_keys("order", orders.iter());
    let messages = ErasedMessages { ordering_keys: &keys, before: Some(before) };
    deliveries += Deliveries::erase(conn, merchant, messages, |_| true, erase).await?;

    let subjects: Vec<_> =
        event.rma_identifiers.iter().map(|name| format!("{merchant}/{name}")).collect();
    let events = erase_events(conn, &subjects, erase_report).await?;
    Ok(ErasureCounts { records, events, deliveries })
}

fn ordering_keys<'a>(kind: &str, numbers: impl Iterator<Item = &'a String>) -> Vec<String> {
    numbers.map(|number| format!("{kind}:{number}")).collect()
}
