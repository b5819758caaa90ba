//! Taking tokens and clients out of service, here at once and everywhere within seconds.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use domain::access::{Revocation, Revoked};
use platform::{Clock, Process, Timestamp, chain, database::Pool, identity::Verifier};

use crate::{App, error::Error, store::revocations};

/// How often a replica looks what other replicas revoked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Keeps this process's list in step with the table, from the first moment on.
pub(crate) fn follow_revocations(process: &Process, verifier: Arc<Verifier>) {
    let (pool, clock) = (process.pool.clone(), process.clock.clone());
    process.tasks.every("revocations", LOOK_EVERY, move || {
        let (pool, clock, verifier) = (pool.clone(), clock.clone(), verifier.clone());
        async move {
            if let Err(error) = look(&pool, &clock, &verifier).await {
                tracing::warn!(error = chain(&error), "revocations are not up to date");
            }
        }
    });
}

async fn look(pool: &Pool, clock: &Clock, verifier: &Verifier) -> Result<(), Error> {
    let now = clock.now();
    let mut conn = pool.get().await?;
    for revocation in revocations::in_force(&mut conn, now).await? {
        verifier.revocations().add(revocation);
    }
    verifier.revocations().forget_expired(now);
    revocations::forget_expired(&mut conn, now).await
}

/// Records a revocation and announces it, in the caller's transaction.
pub(crate) async fn revoke(
    app: &App,
    conn: &mut AsyncPgConnection,
    what: Revoked,
    now: Timestamp,
) -> Result<Revocation, Error> {
    let lifetime = TimeDelta::from_std(app.settings.tokens.lifetime).unwrap_or(TimeDelta::MAX);
    let revocation = Revocation { what, until: now + lifetime };
    if revocations::insert(conn, &revocation, now).await? {
        app.outbox.append(conn, now, [revocation.clone()]).await?;
    }
    Ok(revocation)
}
