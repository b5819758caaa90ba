//! Saves changed returns, enqueues the RMA messages for the merchants and adds the timeline entries.
//! RMA messages are enqueued only here, so that the merchant receives each change exactly once.
//!
//! See docs/decisions/return-messages.md.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use delivery::{Deliveries, NewDelivery, NewMessage};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::merchant::Settings;
use domain::message_kind::{MessageKind, MessageVersion};
use domain::returns::{Change, Deadline, Discrepancy, Rma, ServiceEvent};
use futures_util::future::join3;
use platform::database::DatabaseError;
use platform::{Timestamp, telemetry};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::orders::units::OrderUnits;
use crate::store::guarantees::{self, NewSum};
use crate::store::return_rows::{self, InsertError, ReturnRow, WriteMode};
use crate::store::timeline::NewEntry;
use crate::store::{MAX_REQUEST_BATCH_BYTES, discrepancies};

/// Why a return changed.
#[derive(Debug, Clone)]
pub(crate) struct Cause<'a> {
    /// The client, or the type of another service's event.
    pub(crate) actor: &'a str,
    /// The request or report; names the timeline entry of a change without a message.
    pub(crate) action: &'a str,
    /// A JSON object with details for the timeline.
    pub(crate) detail: Value,
}

/// Changes of returns that are saved together.
pub(crate) struct ReturnChanges {
    deliveries: Deliveries,
    new: Vec<ReturnRow>,
    /// Changed returns by merchant and identifier, each as it is after its last change.
    changed: BTreeMap<(MerchantId, String), ReturnRow>,
    entries: Vec<(NewEntry, Option<Announcement>)>,
    discrepancies: Vec<(MerchantId, Discrepancy)>,
    guarantees: Vec<NewSum>,
    /// Size of the documents and messages.
    bytes: usize,
}

/// A message to the merchant and the trace of the request that caused it.
struct Announcement {
    message: NewMessage,
    traceparent: Option<String>,
}

impl ReturnChanges {
    pub(crate) fn new(deliveries: &Deliveries) -> Self {
        Self {
            deliveries: deliveries.clone(),
            new: Vec::new(),
            changed: BTreeMap::new(),
            entries: Vec::new(),
            discrepancies: Vec::new(),
            guarantees: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a new return with the first entry of its timeline and its first message, which a return that waits for
    /// review does not have yet.
    pub(crate) fn add_new(
        &mut self,
        rma: &Rma,
        order_units: &OrderUnits,
        customer_email: Option<&str>,
        cause: Cause<'_>,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let change = Change {
            event: rma.first_event(),
            units: rma.units.iter().map(|unit| unit.id.clone()).collect(),
            ..Change::default()
        };
        let row = ReturnRow::new(rma, self.deadlines(rma), customer_email, |unit| {
            order_units.sequence(unit).ok_or_else(|| {
                let order = &unit.order_identifier;
                DatabaseError::Internal(format!("order {order} of a new return is not loaded"))
            })
        })?;
        self.bytes += row.bytes();
        self.new.push(row);
        self.add_entry(rma, &change, cause, now)
    }

    /// Adds a changed return with its message and its timeline entry. A report that came too late for every
    /// unit only adds a timeline entry.
    pub(crate) fn add(
        &mut self,
        rma: &Rma,
        change: &Change,
        cause: Cause<'_>,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        if change.is_empty() && change.late.is_empty() {
            return Ok(());
        }
        if !change.is_empty() {
            let key = (rma.merchant.clone(), rma.rma_identifier.clone());
            let row = ReturnRow::changed(rma, self.deadlines(rma))?;
            self.bytes += row.bytes();
            self.changed.insert(key, row);
        }
        let found = change.discrepancies.iter().map(|it| (rma.merchant.clone(), it.clone()));
        self.discrepancies.extend(found);
        for guarantee in &change.guarantees {
            self.guarantees.extend(NewSum::of_change(&rma.merchant, &rma.currency, guarantee));
        }
        self.add_entry(rma, change, cause, now)
    }

    /// The deadlines of a return, by the default settings until the merchant is known. Deadlines follow the merchant's
    /// settings later.
    fn deadlines(&self, rma: &Rma) -> Vec<Deadline> {
        static DEFAULT: LazyLock<Settings> = LazyLock::new(|| Settings::new(""));
        let merchant = self.deliveries.merchant(&rma.merchant);
        rma.deadlines(merchant.as_ref().map_or(&DEFAULT, |it| &it.settings))
    }

    fn add_entry(
        &mut self,
        rma: &Rma,
        change: &Change,
        cause: Cause<'_>,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let version = self.deliveries.message_version(&rma.merchant, MessageKind::Rma);
        let message = change.event.map(|event| message(rma, event, version)).transpose()?;
        self.bytes += message.as_ref().map_or(0, |message| message.body.len());
        let announcement =
            message.map(|message| Announcement { message, traceparent: telemetry::traceparent() });
        self.entries.push((new_entry(rma, change, cause, now), announcement));
        Ok(())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a batch has enough changes. Many reports about one large return change it many times.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > MAX_REQUEST_BATCH_BYTES
    }

    /// Saves the returns and the timelines and enqueues the messages, in one round trip. The connection is shared,
    /// so that the caller can send other statements with these.
    pub(crate) async fn save(
        self,
        conn: &AsyncPgConnection,
        now: Timestamp,
    ) -> Result<(), InsertError> {
        let Self { deliveries, mut new, changed, entries, discrepancies, guarantees, .. } = self;
        let (entries, messages) = assign_ids(entries, now);
        let mut changed: Vec<_> = changed.into_values().collect();
        let last = last_deliveries(&entries);
        for row in new.iter_mut().chain(&mut changed) {
            let delivery = last.get(&row.key()).copied();
            row.set_last_delivery(delivery);
        }
        // A statement that writes returns adds timeline entries too, which saves a round trip. An entry needs its
        // return, so the first statement that is sent adds all of them: changed returns exist already.
        let none: &[NewEntry] = &[];
        let (with_new, with_changed) =
            if new.is_empty() { (none, &entries[..]) } else { (&entries[..], none) };
        // The statements are sent at once and run in this order. If one fails, so do those after it.
        let (inserted, saved, enqueued) = join3(
            return_rows::write(conn, WriteMode::Insert, &new, with_new),
            return_rows::write(conn, WriteMode::Replace, &changed, with_changed),
            deliveries.append_new(conn, now, &messages),
        )
        .await;
        inserted?;
        saved?;
        enqueued?;
        guarantees::add(conn, &guarantees).await?;
        Ok(discrepancies::record(conn, &discrepancies, now).await?)
    }

    /// Saves changes without new returns.
    pub(crate) async fn save_changed(
        self,
        conn: &AsyncPgConnection,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let identifiers: Vec<_> = self.changed.keys().map(|(_, rma)| rma.clone()).collect();
        self.save(conn, now).await.map_err(|error| match error {
            InsertError::Database(error) => error,
            // A change never adds a unit to a return.
            InsertError::UnitHeld => DatabaseError::Internal(format!(
                "a unit of a changed return is in another return, returns {}",
                identifiers.join(", ")
            )),
        })
    }
}

/// Saves a changed return, enqueues its message and adds the timeline entry.
pub(crate) async fn record(
    conn: &mut AsyncPgConnection,
    deliveries: &Deliveries,
    rma: &Rma,
    change: &Change,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let mut changes = ReturnChanges::new(deliveries);
    changes.add(rma, change, cause, now)?;
    changes.save_changed(conn, now).await
}

fn message(
    rma: &Rma,
    event: ServiceEvent,
    version: MessageVersion,
) -> Result<NewMessage, DatabaseError> {
    let body = serde_json::to_vec(&rma.message_in(version))
        .map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
    Ok(NewMessage {
        merchant: rma.merchant.clone(),
        kind: MessageKind::Rma,
        version,
        ordering_key: Some(format!("rma:{}", rma.rma_identifier)),
        event: event.as_str().to_owned(),
        body: body.into(),
    })
}

fn new_entry(
    rma: &Rma,
    change: &Change,
    Cause { actor, action, detail }: Cause<'_>,
    now: Timestamp,
) -> NewEntry {
    let mut all = json!({ "cause": action });
    if let (Some(all), Value::Object(detail)) = (all.as_object_mut(), detail) {
        all.extend(detail);
        let units =
            [("units", &change.units), ("late", &change.late), ("reopened", &change.reopened)];
        for (name, units) in units {
            if !units.is_empty() {
                all.insert(name.to_owned(), json!(units));
            }
        }
    }
    NewEntry {
        merchant: rma.merchant.clone(),
        rma_identifier: rma.rma_identifier.clone(),
        at: now,
        actor: actor.to_owned(),
        event: change.event.map_or(action, |event| event.as_str()).to_owned(),
        detail: all,
        delivery: None,
    }
}

/// The last message about each return.
fn last_deliveries(entries: &[NewEntry]) -> HashMap<(&str, &str), Uuid> {
    let sent =
        entries.iter().filter_map(|NewEntry { merchant, rma_identifier, delivery, .. }| {
            Some(((merchant.as_str(), rma_identifier.as_str()), (*delivery)?))
        });
    sent.collect()
}

/// Gives each message an id, which its timeline entry names.
fn assign_ids(
    entries: Vec<(NewEntry, Option<Announcement>)>,
    now: Timestamp,
) -> (Vec<NewEntry>, Vec<NewDelivery>) {
    let number = entries.iter().filter(|(_, announcement)| announcement.is_some()).count();
    let mut ids = Deliveries::new_ids(now, number).into_iter();
    let mut messages = Vec::with_capacity(number);
    let entry =
        |(entry, announcement): (NewEntry, Option<Announcement>)| {
            let message = announcement.and_then(|announcement| Some((announcement, ids.next()?)));
            let delivery = message.as_ref().map(|(_, id)| *id);
            messages.extend(message.map(|(Announcement { message, traceparent }, id)| {
                NewDelivery { id, traceparent, message }
            }));
            NewEntry { delivery, ..entry }
        };
    let entries = entries.into_iter().map(entry).collect();
    (entries, messages)
}
