//! Creates returns, many in one transaction.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use diesel_async::AsyncPgConnection;
use domain::merchant::Merchant;
use futures_util::future::{join, join3};
use messaging::{Outbox, SerializedEvent};
use platform::batching::{BatchHandler, BatchResults, Job, Processing};
use platform::idempotency::{self, OwnedKey};
use platform::{Clock, Timestamp};
use tracing::Span;

use crate::App;
use crate::error::Error;
use crate::messages::Messages;
use crate::orders::units::{OrderUnits, load_shoppers};
use crate::return_changes::ReturnChanges;
use crate::returns::{NewReturn, assess_and_create, orders_of, reviews};
use crate::shoppers::view::ReturnView;
use crate::store::orders::RowLock;

pub(crate) struct ReturnJob {
    merchant: Arc<Merchant>,
    actor: String,
    key: Option<OwnedKey>,
    new: NewReturn,
    /// The span of the request.
    span: Span,
}

impl Job for ReturnJob {
    fn owner(&self) -> &str {
        self.merchant.identifier.as_str()
    }

    fn weight(&self) -> usize {
        self.new.request.units.len()
    }
}

/// Creates a return and returns the response. A repeated request gets the first response.
#[tracing::instrument(skip_all)]
pub(crate) async fn create(
    app: &App,
    merchant: Arc<Merchant>,
    actor: &str,
    key: Option<OwnedKey>,
    new: NewReturn,
) -> Result<String, Error> {
    let actor = actor.to_owned();
    let span = Span::current();
    app.new_returns.run(ReturnJob { merchant, actor, key, new, span }).await
}

pub(crate) struct ReturnHandler {
    pub(crate) clock: Clock,
    pub(crate) outbox: Outbox,
    pub(crate) messages: Messages,
}

impl BatchHandler for ReturnHandler {
    type Job = ReturnJob;
    type Response = String;
    type Error = Error;

    async fn process(
        &self,
        conn: &mut AsyncPgConnection,
        jobs: &[&ReturnJob],
        processing: Processing,
    ) -> Result<BatchResults<String, Error>, Error> {
        let row_lock = match processing {
            Processing::Batch => RowLock::UpdateOrSkip,
            Processing::Alone => RowLock::Update,
        };
        let orders: BTreeSet<_> = jobs.iter().flat_map(|job| job.orders()).collect();
        let keys: Vec<_> = jobs.iter().filter_map(|job| job.key()).collect();
        // The statements are sent at once and run in this order: keys are read under the locks.
        let (loaded, states) =
            join(OrderUnits::load_all(conn, &orders, row_lock), idempotency::find_all(conn, &keys))
                .await;
        let mut loaded = loaded?;
        let mut states = states?.into_iter();
        // After the locks, so that times follow the order of the changes.
        let now = self.clock.now();
        load_shoppers(conn, with_merchants(&mut loaded, jobs), now).await?;
        let mut changes = ReturnChanges::new(&self.messages);
        let mut events = Vec::new();
        let mut results: BatchResults<String, Error> = Vec::with_capacity(jobs.len());
        let mut used_keys = HashSet::new();
        let mut new_keys = Vec::new();
        for job in jobs {
            let key = job.key();
            let completed = match key {
                Some(key) => key.completed(idempotency::next_state(&mut states)?),
                None => Ok(None),
            };
            let is_first_with_key = match (&completed, key) {
                (Ok(None), Some(it)) => used_keys.insert((it.merchant, it.operation, it.key)),
                _ => true,
            };
            let order_units = loaded.entry(job.merchant.identifier.to_string()).or_default();
            let is_loaded = |(_, order): (&str, &str)| order_units.orders.contains_key(order);
            let is_ready = processing == Processing::Alone
                || (job.orders().all(is_loaded) && !changes.is_full());
            results.push(match completed {
                Err(error) => Some(Err(error.into())),
                Ok(Some(response)) => Some(Ok(response)),
                // The request is processed alone: it has the key of an earlier request of this batch, whose
                // response it then finds; or its orders are locked by another transaction; or the batch is full.
                Ok(None) if !is_first_with_key || !is_ready => None,
                Ok(None) => {
                    let create = || self.create(job, order_units, &mut changes, &mut events, now);
                    let created = job.span.in_scope(create);
                    // The changes of the request may be incomplete, so nothing is saved.
                    if let Err(error @ (Error::Database(_) | Error::Serialize(_))) = created {
                        return Err(error);
                    }
                    new_keys.extend(key.zip(created.as_ref().ok().cloned()));
                    Some(created)
                }
            });
        }
        let (saved, inserted, published) = join3(
            changes.save(conn, now),
            idempotency::insert_all(conn, &new_keys, now),
            self.outbox.append_serialized(conn, now, &events),
        )
        .await;
        saved?;
        let inserted = inserted?;
        published?;
        if inserted { Ok(results) } else { Err(Error::ConcurrentInsert) }
    }

    fn is_conflict(error: &Error) -> bool {
        matches!(error, Error::ConcurrentInsert)
    }
}

/// The loaded orders with their merchants.
fn with_merchants<'a>(
    loaded: &'a mut HashMap<String, OrderUnits>,
    jobs: &[&'a ReturnJob],
) -> Vec<(&'a Merchant, &'a mut OrderUnits)> {
    let merchants: HashMap<_, _> =
        jobs.iter().map(|job| (job.merchant.identifier.as_str(), &*job.merchant)).collect();
    let with_merchant = |(merchant, order_units): (&'a String, &'a mut OrderUnits)| {
        Some((*merchants.get(merchant.as_str())?, order_units))
    };
    loaded.iter_mut().filter_map(with_merchant).collect()
}

impl ReturnJob {
    fn key(&self) -> Option<idempotency::IdempotencyKey<'_>> {
        Some(self.key.as_ref()?.of(&self.merchant.identifier))
    }

    /// The merchant and the identifier of each order.
    fn orders(&self) -> impl Iterator<Item = (&str, &str)> {
        let merchant = self.merchant.identifier.as_str();
        orders_of(&self.new.request).into_iter().map(move |order| (merchant, order))
    }
}

impl ReturnHandler {
    fn create(
        &self,
        ReturnJob { merchant, actor, new, .. }: &ReturnJob,
        order_units: &mut OrderUnits,
        changes: &mut ReturnChanges,
        events: &mut Vec<SerializedEvent>,
        now: Timestamp,
    ) -> Result<String, Error> {
        let rma = assess_and_create(merchant, actor, new, order_units, changes, now)?;
        let order = |name: &str| order_units.orders.get(name).map(|it| &it.order);
        for confirmed in reviews::confirmed(merchant, &rma, order, now) {
            events.push(self.outbox.serialize(now, &confirmed)?);
        }
        order_units.add_return(&rma);
        Ok(serde_json::to_string(&ReturnView::new(rma, Some(merchant), new.shopper.as_ref()))?)
    }
}
