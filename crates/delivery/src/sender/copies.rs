//! What the ledger is asked and told of messages that came off the queue and were not sent.

use std::collections::HashSet;

use platform::{chain, database::DatabaseError};
use uuid::Uuid;

use crate::engine::{Engine, patience};
use crate::job::Job;
use crate::ledger;
use crate::settler::Tag;

/// Of these messages, the ones that are still waiting for exactly this attempt.
pub(super) async fn wanted(engine: &Engine, jobs: Vec<(Job, Tag)>) -> Vec<(Job, Tag)> {
    let ids: Vec<_> = jobs.iter().map(|(job, _)| job.id).collect();
    let mut backoff = patience();
    let queued = loop {
        match ask(engine, &ids).await {
            Ok(queued) => break queued,
            Err(error) => {
                tracing::warn!(error = chain(&error), "messages wait for the ledger");
                tokio::time::sleep(backoff.pause()).await;
            }
        }
    };
    let due = |job: &Job| {
        queued.contains(&ledger::Queued { id: job.id, round: job.round, attempts: job.number - 1 })
    };
    jobs.into_iter().filter(|(job, _)| due(job)).collect()
}

/// Takes out what was queued before its merchant paused the endpoint.
pub(super) fn take_paused(engine: &Engine, jobs: &mut Vec<(Job, Tag)>) -> Vec<Uuid> {
    let is_paused =
        |(job, _): &mut (Job, Tag)| engine.is_paused(&job.message.merchant, job.message.kind);
    jobs.extract_if(.., is_paused).map(|(job, _)| job.id).collect()
}

/// Makes messages ready again. If that fails they are recalled when their lease is over.
pub(super) async fn release_claim(engine: &Engine, ids: &[Uuid]) {
    let giving_back = async {
        let mut conn = engine.pool.get().await?;
        ledger::release_claim(&mut conn, engine.clock.now(), ids).await
    };
    match giving_back.await {
        Ok(()) => engine.wake.notify_one(),
        Err(error) => tracing::warn!(error = chain(&error), "messages were not given back"),
    }
}

async fn ask(engine: &Engine, ids: &[Uuid]) -> Result<HashSet<ledger::Queued>, DatabaseError> {
    let mut conn = engine.pool.get().await?;
    Ok(ledger::still_queued(&mut conn, ids).await?.into_iter().collect())
}
