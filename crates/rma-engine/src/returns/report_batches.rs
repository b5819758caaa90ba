//! Applies carrier reports, many in one transaction.

use std::collections::HashSet;
use std::sync::Arc;

use diesel_async::AsyncPgConnection;
use domain::merchant::Merchant;
use futures_util::future::join;
use platform::Clock;
use platform::batching::{BatchHandler, BatchResults, Job, Processing};
use platform::idempotency::{self, IdempotencyKey};
use serde_json::json;
use tracing::Span;

use crate::App;
use crate::error::Error;
use crate::messages::Messages;
use crate::return_changes::ReturnChanges;
use crate::returns::parcels::{Reported, ReportedReturns};
use crate::returns::reopening::FreeUnits;
use crate::store;
use crate::store::orders::ResourceKey;

pub(crate) struct ReportJob {
    merchant: Arc<Merchant>,
    actor: String,
    /// Event identifiers are unique for each carrier only, so the key has the carrier too.
    key: String,
    reported: Reported,
    /// The span of the request.
    span: Span,
}

impl Job for ReportJob {
    fn owner(&self) -> &str {
        self.merchant.identifier.as_str()
    }

    fn weight(&self) -> usize {
        1
    }
}

impl ReportJob {
    pub(crate) fn new(merchant: Arc<Merchant>, actor: &str, reported: Reported) -> Self {
        let key = json!([actor, reported.event_identifier]).to_string();
        Self { merchant, actor: actor.to_owned(), key, reported, span: Span::current() }
    }

    fn idempotency_key(&self) -> IdempotencyKey<'_> {
        IdempotencyKey {
            merchant: Some(&self.merchant.identifier),
            operation: "carrier_events",
            key: &self.key,
            name: "event_identifier",
            request: self.reported.digest,
        }
    }
}

/// Applies a report and returns the response. A repeated report gets the first response.
#[tracing::instrument(skip_all, fields(event = %reported.event))]
pub(crate) async fn track(
    app: &App,
    merchant: Arc<Merchant>,
    actor: &str,
    reported: Reported,
) -> Result<String, Error> {
    app.reports.run(ReportJob::new(merchant, actor, reported)).await
}

pub(crate) struct ReportHandler {
    pub(crate) clock: Clock,
    pub(crate) messages: Messages,
}

impl BatchHandler for ReportHandler {
    type Job = ReportJob;
    type Response = String;
    type Error = Error;

    async fn process(
        &self,
        conn: &mut AsyncPgConnection,
        jobs: &[&ReportJob],
        processing: Processing,
    ) -> Result<BatchResults<String, Error>, Error> {
        let keys: Vec<_> = jobs.iter().map(|job| job.idempotency_key()).collect();
        let (named, parcels) = keys_of_returns(jobs);
        let may_wait = processing == Processing::Alone;
        // Orders are locked before returns.
        let free = if may_wait && jobs.iter().any(|job| job.reported.event.is_scan()) {
            FreeUnits::lock(conn, &named, &parcels).await?
        } else {
            FreeUnits::default()
        };
        // Both statements are sent at once and run in this order: keys are read under the locks.
        let (requested, states) = join(
            store::returns::lock_requested(conn, &named, &parcels, processing),
            idempotency::find_all(conn, &keys),
        )
        .await;
        let mut returns = ReportedReturns::read(&requested?)?;
        // After the locks, so that times follow the order of the changes.
        let now = self.clock.now();
        let mut changes = ReturnChanges::new(&self.messages);
        let mut results: BatchResults<String, Error> = Vec::with_capacity(jobs.len());
        let mut used_keys = HashSet::new();
        let mut new_keys = Vec::new();
        for ((job, key), state) in jobs.iter().zip(&keys).zip(states?) {
            let ReportJob { merchant, actor, reported, span, .. } = job;
            let is_ready = may_wait
                || (returns.has_all_of(&merchant.identifier, reported)
                    && !returns.may_reopen(&merchant.identifier, reported)
                    && !changes.is_full());
            let completed = key.completed(state);
            let is_first_with_key = match completed {
                Ok(None) => used_keys.insert((key.merchant, key.key)),
                _ => true,
            };
            results.push(match completed {
                Err(error) => Some(Err(error.into())),
                Ok(Some(response)) => Some(Ok(response)),
                // The report is processed alone: it has the key of an earlier report of this batch, whose response
                // it then finds; or its returns are locked by another transaction or expired; or the batch is full.
                Ok(None) if !is_first_with_key || !is_ready => None,
                Ok(None) => {
                    let apply =
                        || returns.apply(merchant, actor, reported, &free, &mut changes, now);
                    let tracked = match span.in_scope(apply) {
                        // The changes of the report may be incomplete, so nothing is saved.
                        Err(error @ (Error::Database(_) | Error::ExpiredMeanwhile(_))) => {
                            return Err(error);
                        }
                        Err(error) => Err(error),
                        Ok(tracked) => Ok(serde_json::to_string(&tracked)?),
                    };
                    new_keys.extend(tracked.as_ref().ok().map(|response| (*key, response.clone())));
                    Some(tracked)
                }
            });
        }
        let (saved, inserted) =
            join(changes.save(conn, now), idempotency::insert_all(conn, &new_keys, now)).await;
        saved?;
        if inserted? { Ok(results) } else { Err(Error::ConcurrentInsert) }
    }

    fn is_conflict(error: &Error) -> bool {
        matches!(error, Error::ConcurrentInsert | Error::ExpiredMeanwhile(_))
    }
}

/// The named returns and the parcels that reports are about, with their merchants.
fn keys_of_returns<'a>(jobs: &[&'a ReportJob]) -> (Vec<ResourceKey<'a>>, Vec<ResourceKey<'a>>) {
    let mut named = Vec::new();
    let mut parcels = Vec::new();
    for ReportJob { merchant, reported, .. } in jobs.iter().copied() {
        let merchant = merchant.identifier.as_str();
        match (&reported.rma_identifier, &reported.tracking_number) {
            (Some(name), _) => named.push((merchant, name.as_str())),
            (None, number) => parcels.extend(number.iter().map(|it| (merchant, it.as_str()))),
        }
    }
    (named, parcels)
}
