//! The deadlines of one transaction.

mod effects;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use domain::merchant::MailEvent;
use domain::returns::{Change, Deadline, DeadlineKind, Rma};
use merchants::Merchants;
use messaging::Outbox;
use platform::batching::Processing;
use platform::{Clock, Timestamp};
use serde_json::json;

use self::effects::{Effects, Orders};
use super::{FAILED_INTERVAL, LOCKED_INTERVAL};
use crate::error::Error;
use crate::messages::Messages;
use crate::return_changes::{Cause, ReturnChanges};
use crate::returns::{refused, reviews};
use crate::store::deadlines::{self, StoredDeadline};
use crate::store::orders::{Projected, ResourceKey, RowLock};
use crate::store::{self, returns};

/// Longest wait for a lock, of a deadline that is processed alone.
const LIMIT_LOCK_WAIT: &str = "SET LOCAL lock_timeout = '100ms'";

/// The result of a transaction.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Worked {
    /// Deadlines that were due.
    pub(super) due: usize,
    /// Deadlines that were processed, moved or deleted.
    pub(super) done: usize,
    /// Returns that expired.
    pub(super) expired: u64,
    /// Returns with exchanged units that did not come back.
    pub(super) unreturned: u64,
    /// Returns about which the rule decided.
    pub(super) reviewed: u64,
    /// Returns whose shoppers were reminded.
    pub(super) reminded: u64,
}

impl Worked {
    /// Counts a return that a deadline changed.
    fn count(&mut self, kind: DeadlineKind) {
        let number = match kind {
            DeadlineKind::Send => &mut self.expired,
            DeadlineKind::Exchange => &mut self.unreturned,
            DeadlineKind::Review => &mut self.reviewed,
            DeadlineKind::Reminder => &mut self.reminded,
        };
        *number += 1;
    }
}

pub(super) struct Batch<'a> {
    pub(super) merchants: &'a Merchants,
    pub(super) messages: &'a Messages,
    pub(super) outbox: &'a Outbox,
    pub(super) clock: &'a Clock,
    /// The time of the database.
    pub(super) now: Timestamp,
    pub(super) processing: Processing,
}

#[derive(Default)]
struct Partition<'d> {
    /// Deadlines that are due later, with their new times.
    moved: Vec<(&'d StoredDeadline, Deadline)>,
    due: Vec<&'d StoredDeadline>,
    /// Deadlines of unknown merchants.
    unknown: Vec<&'d StoredDeadline>,
}

/// Returns whose deadlines are due, as far as no other transaction has locked them or their orders, and they are not too
/// large for a batch.
struct Locked {
    returns: HashMap<(String, String), Rma>,
    orders: Orders,
}

impl Batch<'_> {
    /// Works off the oldest deadlines that are due, up to `most`.
    ///
    /// In a batch, returns that are locked, or too large together, are left and tried again later. If all are left,
    /// nothing changes, and the caller processes them alone. Alone, a lock that is not free in time is an error, and
    /// the caller postpones the deadline.
    pub(super) async fn work_off(
        &self,
        conn: &mut AsyncPgConnection,
        most: usize,
    ) -> Result<Worked, Error> {
        conn.batch_execute(LIMIT_LOCK_WAIT).await?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let due = deadlines::lock_due(conn, self.now, most).await?;
        let mut worked = Worked { due: due.len(), ..Worked::default() };
        let Partition { moved, due, unknown } = self.partition(&due);
        let mut locked = self.lock(conn, &due).await?;
        let mut changes = ReturnChanges::new(self.messages);
        // After the locks, so that times follow the order of the changes.
        let now = self.clock.now();
        let mut effects = Effects::default();
        let mut ended = Vec::new();
        let mut left = Vec::new();
        for deadline in due {
            let key = (deadline.merchant.to_string(), deadline.rma_identifier.clone());
            let Some(rma) = locked.returns.get_mut(&key) else {
                left.push(deadline);
                continue;
            };
            let change = self.apply(rma, deadline.kind, now)?;
            ended.push(deadline);
            if change.is_empty() {
                continue;
            }
            worked.count(deadline.kind);
            changes.add(rma, &change, cause(deadline, rma), now)?;
            let merchant = self.merchants.get(&rma.merchant);
            let facts = (merchant.as_deref(), &locked.orders);
            effects.add(deadline.kind, rma, &change, facts, now)?;
        }
        worked.done = moved.len() + ended.len() + unknown.len();
        if worked.done == 0 && self.processing == Processing::Batch {
            // The caller tries each alone.
            return Ok(worked);
        }
        // Before the returns are saved, which adds their next deadlines of the same kinds.
        deadlines::delete(conn, &ended).await?;
        changes.save_changed(conn, now).await?;
        effects.apply(conn, self.outbox, locked.orders, now).await?;
        deadlines::reschedule(conn, &moved).await?;
        deadlines::postpone(conn, &left, self.now + LOCKED_INTERVAL).await?;
        deadlines::postpone(conn, &unknown, self.now + FAILED_INTERVAL).await?;
        Ok(worked)
    }
}

impl Batch<'_> {
    /// Separates the deadlines that are due later by the present settings of their merchants, and those of merchants
    /// that this replica does not know: their days may be longer.
    fn partition<'d>(&self, due: &'d [StoredDeadline]) -> Partition<'d> {
        let mut partition = Partition::default();
        for stored in due {
            let Some(merchant) = self.merchants.get(&stored.merchant) else {
                partition.unknown.push(stored);
                continue;
            };
            let deadline = stored.kind.starting(stored.started_at, &merchant.settings);
            match deadline.filter(|deadline| deadline.due_at > self.now) {
                Some(deadline) => partition.moved.push((stored, deadline)),
                None => partition.due.push(stored),
            }
        }
        partition
    }

    /// Locks the orders of the returns, then the returns. In a batch, locked rows are skipped.
    async fn lock(
        &self,
        conn: &AsyncPgConnection,
        due: &[&StoredDeadline],
    ) -> Result<Locked, Error> {
        let named: Vec<ResourceKey<'_>> =
            due.iter().map(|it| (it.merchant.as_str(), it.rma_identifier.as_str())).collect();
        let mut found = Vec::with_capacity(named.len());
        for row in returns::find_requested(conn, &named, &[]).await? {
            found.extend(row.read()?);
        }
        let wanted: BTreeSet<_> = found
            .iter()
            .flat_map(|rma| rma.units.iter().map(|unit| (rma.merchant.as_str(), unit)))
            .map(|(merchant, unit)| (merchant, unit.id.order_identifier.as_str()))
            .collect();
        let row_lock = match self.processing {
            Processing::Batch => RowLock::UpdateOrSkip,
            Processing::Alone => RowLock::Update,
        };
        let orders = store::orders::find(conn, &wanted, row_lock).await?.into_iter();
        let key =
            |(merchant, it): (String, Projected)| ((merchant, it.order.identifier.clone()), it);
        let orders: BTreeMap<_, _> = orders.map(key).collect();
        let mut locked = HashMap::new();
        for row in returns::lock_requested(conn, &named, &[], self.processing).await? {
            let Some(rma) = row.read()? else { continue };
            let mut of_units = rma.units.iter().map(|unit| unit.id.order_identifier.clone());
            if of_units.all(|order| orders.contains_key(&(row.merchant.clone(), order))) {
                locked.insert((row.merchant, rma.rma_identifier.clone()), rma);
            }
        }
        Ok(Locked { returns: locked, orders })
    }

    /// Applies a deadline to a return. Nothing changes if the return does not need it any more.
    fn apply(&self, rma: &mut Rma, kind: DeadlineKind, now: Timestamp) -> Result<Change, Error> {
        match kind {
            DeadlineKind::Send => Ok(rma.expire(now)),
            DeadlineKind::Exchange => {
                let merchant = self.merchants.get(&rma.merchant);
                let is_due = |started_at| {
                    let settings = merchant.as_ref().map(|it| &it.settings);
                    let deadline = settings.and_then(|it| kind.starting(started_at, it));
                    deadline.is_some_and(|it| it.due_at <= self.now)
                };
                // The deadline is locked, so it is that of the guarantee that started first.
                Ok(rma.report_unreturned(is_due, now))
            }
            DeadlineKind::Reminder => Ok(self.remind(rma, now)),
            DeadlineKind::Review => {
                let Some(decided) = rma.open_review().map(|review| review.by_rule(now)) else {
                    return Ok(Change::default());
                };
                rma.decide(decided).map_err(|refusal| refused(&rma.rma_identifier, refusal))
            }
        }
    }
}

impl Batch<'_> {
    /// Reminds the shopper, if shoppers get such mails and the return does not expire now.
    fn remind(&self, rma: &mut Rma, now: Timestamp) -> Change {
        let event = MailEvent::AboutToExpire;
        let merchant = self.messages.mailing_merchant(&rma.merchant, event);
        let send_by = merchant.and_then(|merchant| rma.send_by(&merchant.settings));
        match send_by {
            Some(end) if end > self.now => rma.remind(now),
            _ => Change::default(),
        }
    }
}

fn cause(deadline: &StoredDeadline, rma: &Rma) -> Cause<'static> {
    let started_at = deadline.started_at;
    let (action, detail) = match deadline.kind {
        DeadlineKind::Send => ("expiry", json!({ "started_at": started_at })),
        DeadlineKind::Exchange => ("exchange deadline", json!({ "started_at": started_at })),
        DeadlineKind::Reminder => ("reminder", json!({ "started_at": started_at })),
        DeadlineKind::Review => {
            let review = rma.review.as_ref();
            let action = review.map_or("review deadline", |review| reviews::action(review.then));
            let rule = review.map(|review| &review.rule);
            (action, json!({ "started_at": started_at, "rule": rule }))
        }
    };
    Cause { actor: "deadline", action, detail }
}
