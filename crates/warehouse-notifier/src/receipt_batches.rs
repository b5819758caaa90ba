//! Stores receipts, those of many requests in one transaction.

use std::collections::{HashMap, HashSet};

use delivery::{Deliveries, NewDelivery, NewMessage, OrderingKeys};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::message_kind::{MessageKind, MessageVersion};
use domain::warehouse::ReceiptBatch;
use futures_util::future::{join, join3};
use messaging::{Outbox, SerializedEvent};
use platform::batching::{BatchHandler, BatchResults, Job, Processing};
use platform::idempotency::{self, IdempotencyKey, KeyState, OwnedKey};
use platform::{Clock, Timestamp, telemetry};
use tracing::Span;
use uuid::Uuid;

use crate::App;
use crate::erasing::without_erased;
use crate::error::Error;
use crate::expected_units::{ExpectedUnits, orders_of};
use crate::new_units::{NewUnit, NewUnits};
use crate::request::Request;
use crate::store::erased_orders::{self, ErasedOrders};
use crate::store::receipts::{self as store, NewReceipt};
use crate::store::record_keys as keys_store;

/// The receipts of one request.
pub(crate) struct ReceiptJob {
    merchant: MerchantId,
    key: Option<OwnedKey>,
    receipts: ReceiptBatch,
    at: Timestamp,
    /// The span of the request.
    span: Span,
}

impl Job for ReceiptJob {
    fn owner(&self) -> &str {
        self.merchant.as_str()
    }

    fn weight(&self) -> usize {
        self.receipts.receipts.len()
    }
}

impl ReceiptJob {
    fn key(&self) -> Option<IdempotencyKey<'_>> {
        Some(self.key.as_ref()?.of(&self.merchant))
    }
}

/// Stores receipts, enqueues a message for each unit that is new, and returns the response. A repeated
/// request gets the first response.
pub(crate) async fn receive(
    app: &App,
    request: Request<'_>,
    receipts: ReceiptBatch,
) -> Result<String, Error> {
    let Request { merchant, key, at, .. } = request;
    let merchant = merchant.clone();
    let key = key.map(OwnedKey::from);
    app.receipts.run(ReceiptJob { merchant, key, receipts, at, span: Span::current() }).await
}

/// A request before anything of the batch is stored.
enum Checked<'a> {
    /// The request stores nothing. `None` if it must be processed alone.
    Ended(Option<Result<String, Error>>),
    Valid(&'a ReceiptJob, NewUnits),
}

pub(crate) struct ReceiptHandler {
    pub(crate) clock: Clock,
    pub(crate) outbox: Outbox,
    pub(crate) deliveries: Deliveries,
}

impl BatchHandler for ReceiptHandler {
    type Job = ReceiptJob;
    type Response = String;
    type Error = Error;

    async fn process(
        &self,
        conn: &mut AsyncPgConnection,
        jobs: &[&ReceiptJob],
        processing: Processing,
    ) -> Result<BatchResults<String, Error>, Error> {
        let requested: Vec<_> = jobs.iter().map(|job| (&job.merchant, &job.receipts)).collect();
        let keys: Vec<_> = jobs.iter().filter_map(|job| job.key()).collect();
        if !erased_orders::wait(conn, &orders_of(&requested), processing).await? {
            return Err(Error::ConcurrentInsert);
        }
        // The statements are sent at once and run in this order: keys are read under the locks of the ASNs.
        let (expected, states) = join(
            ExpectedUnits::load(conn, &requested, processing),
            idempotency::find_all(conn, &keys),
        )
        .await;
        let expected = expected?;
        let erased = ErasedOrders::find(conn, &expected.orders(&requested)).await?;
        let checked = check(jobs, &expected, &erased, states?, processing);
        // Under the locks, so that the ids of messages are in the order of the receipts of an ASN.
        let now = self.clock.now();
        let valid: Vec<_> = checked.iter().filter_map(Checked::valid).collect();
        let rows: Vec<_> =
            valid.iter().flat_map(|(_, new)| new.units.iter().map(|unit| &unit.row)).collect();
        let keys: Vec<_> = valid.iter().map(|(job, new)| (&job.merchant, &new.keys)).collect();
        let (stored, added, are_free) = join3(
            store::insert(conn, &rows),
            keys_store::insert(conn, &keys, now),
            lock_counters(conn, &rows, processing),
        )
        .await;
        let stored = stored?;
        added?;
        // A replay sends an earlier receipt of one of the units. The requests are processed alone.
        if !are_free? {
            return Err(Error::ConcurrentInsert);
        }
        let known: Vec<_> =
            rows.iter().filter(|row| !stored.contains(&row.id)).map(|row| row.key()).collect();
        let found = store::find(conn, &known).await?;
        let first_receipts: HashMap<_, _> = found.iter().map(|it| (it.key(), it)).collect();
        let mut responses = Vec::with_capacity(valid.len());
        let mut new_keys = Vec::new();
        for (job, new) in &valid {
            let response = new.response(&first_receipts)?;
            new_keys.extend(job.key().map(|key| (key, response.clone())));
            responses.push(response);
        }
        let (messages, events) = self.announcements(&valid, &stored, now)?;
        // The ordering keys are locked last, because other receipts wait for them.
        let (published, inserted, enqueued) = join3(
            self.outbox.append_serialized(conn, now, &events),
            idempotency::insert_all(conn, &new_keys, now),
            self.deliveries.append_new(conn, now, &messages, OrderingKeys::Shared),
        )
        .await;
        published?;
        enqueued?;
        if !inserted? {
            return Err(Error::ConcurrentInsert);
        }
        let mut responses = responses.into_iter();
        let result = |checked| match checked {
            Checked::Ended(result) => result,
            Checked::Valid(..) => responses.next().map(Ok),
        };
        Ok(checked.into_iter().map(result).collect())
    }

    fn is_conflict(error: &Error) -> bool {
        matches!(error, Error::ConcurrentInsert)
    }
}

impl<'a> Checked<'a> {
    fn valid(&self) -> Option<(&'a ReceiptJob, &NewUnits)> {
        match self {
            Self::Ended(_) => None,
            Self::Valid(job, new) => Some((job, new)),
        }
    }
}

/// Checks requests in order. A unit that two requests have is stored by the first. The other request is
/// processed alone and then finds the receipt of the first.
fn check<'a>(
    jobs: &[&'a ReceiptJob],
    expected: &ExpectedUnits,
    erased: &ErasedOrders,
    states: Vec<KeyState>,
    processing: Processing,
) -> Vec<Checked<'a>> {
    let mut states = states.into_iter();
    let mut used_keys = HashSet::new();
    let mut used_units = HashSet::new();
    let check_one = |job: &&'a ReceiptJob| {
        let key = job.key();
        let completed = key.map_or(Ok::<_, Error>(None), |key| {
            Ok(key.completed(idempotency::next_state(&mut states)?)?)
        });
        match completed {
            Err(error) => return Checked::Ended(Some(Err(error))),
            Ok(Some(response)) => return Checked::Ended(Some(Ok(response))),
            Ok(None) => {}
        }
        let is_first = key.is_none_or(|it| used_keys.insert((it.merchant, it.key)));
        let is_ready =
            processing == Processing::Alone || expected.has_asns_of(&job.merchant, &job.receipts);
        if !is_first || !is_ready {
            return Checked::Ended(None);
        }
        let new = expected.complete(&job.merchant, &job.receipts).and_then(|(completed, keys)| {
            let names = erased.after(&job.merchant, job.at);
            let kept = completed.into_iter().map(|it| without_erased(it, &names));
            NewUnits::new(&job.merchant, kept.collect::<Result<_, _>>()?, keys, job.at)
        });
        let new = match new {
            Ok(new) => new,
            Err(error) => return Checked::Ended(Some(Err(error))),
        };
        let units = new.owned_keys();
        if !units.is_disjoint(&used_units) {
            return Checked::Ended(None);
        }
        used_units.extend(units);
        Checked::Valid(job, new)
    };
    jobs.iter().map(check_one).collect()
}

impl ReceiptHandler {
    /// A message for each stored unit, and an event for each that belongs to an RMA.
    fn announcements(
        &self,
        valid: &[(&ReceiptJob, &NewUnits)],
        stored: &HashSet<Uuid>,
        now: Timestamp,
    ) -> Result<(Vec<NewDelivery>, Vec<SerializedEvent>), Error> {
        let mut ids = Deliveries::new_ids(now, stored.len()).into_iter();
        let mut messages = Vec::with_capacity(stored.len());
        let mut events = Vec::new();
        for (job, new) in valid {
            let kind = MessageKind::InventoryReceipt;
            let version = self.deliveries.message_version(&job.merchant, kind);
            job.span.in_scope(|| {
                let traceparent = telemetry::traceparent();
                let units = new.units.iter().filter(|unit| stored.contains(&unit.row.id));
                for (unit, id) in units.zip(ids.by_ref()) {
                    let traceparent = traceparent.clone();
                    let message = message(unit, version);
                    messages.push(NewDelivery { id, traceparent, message });
                    let event = unit.receipt.unit_received(&job.merchant, unit.row.id, job.at);
                    if let Some(event) = event {
                        events.push(self.outbox.serialize(now, &event)?);
                    }
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok((messages, events))
    }
}

/// Locks the counters of the messages about these units. In a batch, false if another transaction has locked one.
async fn lock_counters(
    conn: &AsyncPgConnection,
    rows: &[&NewReceipt],
    processing: Processing,
) -> Result<bool, Error> {
    if processing == Processing::Alone || rows.is_empty() {
        return Ok(true);
    }
    let keys: Vec<_> = rows.iter().map(|row| (row.merchant.as_str(), ordering_key(row))).collect();
    Ok(Deliveries::lock_free_counters(conn, &keys).await?)
}

/// A receipt is a fact about one unit. The prefix differs from that of outbound shipments, which may have the same
/// number.
fn ordering_key(row: &NewReceipt) -> String {
    format!("inbound_asn:{}/{}", row.asn_number, row.unit_identifier)
}

fn message(NewUnit { row, .. }: &NewUnit, version: MessageVersion) -> NewMessage {
    let event =
        if row.rejected { "inventory_receipt.rejected" } else { "inventory_receipt.received" };
    NewMessage {
        merchant: row.merchant.clone(),
        kind: MessageKind::InventoryReceipt,
        version,
        ordering_key: Some(ordering_key(row)),
        event: event.to_owned(),
        body: row.message.clone().into(),
    }
}
