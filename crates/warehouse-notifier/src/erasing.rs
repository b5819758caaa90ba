//! Consumes `returns.erased`: erases the shopper's data in shipments, receipts and their messages.

use std::collections::HashSet;

use api::warehouse::RecordKind;
use delivery::{Deliveries, ErasedMessages};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::erasure::{ErasureCounts, ReturnsErased, erase, erase_report, is_report_about};
use messaging::{Envelope, HandleError, Handler, Outbox, erase_events};
use platform::batching::Processing;
use platform::database::DatabaseError;
use platform::{Clock, Service as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::App;
use crate::error::Error;
use crate::record_keys::{self, Key, RecordKeys};
use crate::store::erased_orders::{self, ErasedOrders};
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

/// Erases what the warehouse reported before the erasure, and records the orders for reports that are being stored. A
/// later report keeps the data, as a new snapshot of an order does.
async fn erase_records(
    conn: &mut AsyncPgConnection,
    event: &ReturnsErased,
) -> Result<ErasureCounts, DatabaseError> {
    let merchant = &event.merchant;
    let orders = &event.order_identifiers;
    let names: HashSet<_> =
        orders.iter().chain(&event.rma_identifiers).map(String::as_str).collect();
    let before = event.erased_at;
    let named = names.iter().map(|name| (merchant.to_string(), (*name).to_owned())).collect();
    erased_orders::lock(conn, &named).await?;
    erased_orders::add(conn, &named, before).await?;
    let digests: Vec<_> =
        names.iter().map(|name| Key::OrderIdentifier((*name).to_owned()).digest()).collect();
    let numbers = erasures::numbers(conn, merchant, &digests).await?;
    let of_kind = |kind: RecordKind| -> Vec<String> {
        numbers.iter().filter(|(it, _)| *it == kind).map(|(_, number)| number.clone()).collect()
    };
    let shipments = of_kind(RecordKind::OutboundShipment);
    let shipments = erasures::lock_shipments(conn, merchant, &shipments, before).await?;
    let asns = of_kind(RecordKind::InboundAsn);
    let asns = erasures::lock_asns(conn, merchant, &asns).await?;
    let (older, newer): (Vec<_>, Vec<_>) = asns.into_iter().partition(|it| it.updated_at < before);
    let is_named = |value: &Value| is_report_about(value, &names);
    let erase_named = |value: &mut Value| {
        if is_named(value) {
            erase_report(value);
        }
    };
    let mut records = erasures::erase_shipments(conn, merchant, &shipments, erase_named).await?;
    records += erasures::erase_asns(conn, merchant, &older, is_named).await?;

    // A message about an older shipment repeats its address, also if the message is newer.
    let parts = erasures::parts(conn, merchant, &shipments).await?;
    let keys = ordering_keys("asn", shipments.iter().map(|it| &it.asn_number).chain(&parts));
    let messages = ErasedMessages { ordering_keys: &keys, before: None };
    let mut deliveries = Deliveries::erase(conn, merchant, messages, is_named, erase_named).await?;
    // A receipt repeats the reason of the return from its ASN, also if the receipt is newer.
    for (asns, before) in [(older, None), (newer, Some(before))] {
        let asns: Vec<_> = asns.into_iter().map(|it| it.asn_number).collect();
        records += erasures::erase_receipts(conn, merchant, &asns, before, erase_named).await?;
        let units = erasures::received_units(conn, merchant, &asns).await?;
        let keys = ordering_keys("inbound_asn", asns.iter().chain(&units));
        let messages = ErasedMessages { ordering_keys: &keys, before };
        deliveries += Deliveries::erase(conn, merchant, messages, is_named, erase_named).await?;
    }
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

/// The erased ones of the orders that a report names. Waits for their erasures, so the transaction calls this first.
pub(crate) async fn erased_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    keys: &RecordKeys,
) -> Result<ErasedOrders, DatabaseError> {
    let orders = record_keys::orders(merchant.as_str(), keys).collect();
    erased_orders::wait(conn, &orders, Processing::Alone).await?;
    ErasedOrders::find(conn, &orders).await
}

/// A report of which an erasure of these orders is newer.
pub(crate) fn without_erased<T: Serialize + DeserializeOwned>(
    report: T,
    names: &HashSet<&str>,
) -> Result<T, Error> {
    if names.is_empty() {
        return Ok(report);
    }
    erase_if(report, |value| is_report_about(value, names))
}

pub(crate) fn erase_if<T: Serialize + DeserializeOwned>(
    report: T,
    is_named: impl Fn(&Value) -> bool,
) -> Result<T, Error> {
    let mut value = serde_json::to_value(&report)?;
    if is_named(&value) {
        erase_report(&mut value);
    }
    Ok(serde_json::from_value(value)?)
}
