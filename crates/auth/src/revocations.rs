//! Taking tokens and clients out of service, here at once and everywhere within seconds.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta};
use diesel_async::AsyncPgConnection;
use domain::access::{Revocation, Revoked};
use platform::{
    Clock, Process, Timestamp, chain,
    database::Pool,
    identity::{Claims, Verifier},
};

use crate::{App, error::Error, settings::LONGEST_LIFETIME, store::revocations};

/// How often a replica looks what other replicas revoked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A look goes back this far behind the newest row seen: transactions commit out of order.
const OVERLAP: TimeDelta = TimeDelta::seconds(30);
/// Another replica may grant a token for a moment longer, by a clock of its own.
const MARGIN: TimeDelta = TimeDelta::minutes(1);

/// Keeps this process's list in step with the table, from the first moment on. Until the first look
/// no token is believed.
pub(crate) fn follow_revocations(process: &Process, verifier: Arc<Verifier>) {
    let follower = Follower {
        pool: process.pool.clone(),
        clock: process.clock.clone(),
        verifier,
        seen: Timestamp::UNIX_EPOCH,
    };
    process.tasks.spawn("revocations", |stop| async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = follower.run() => {}
        }
    });
}

struct Follower {
    pool: Pool,
    clock: Clock,
    verifier: Arc<Verifier>,
    seen: Timestamp,
}

impl Follower {
    async fn run(mut self) {
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!(error = chain(&error), "revocations are not up to date");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        let mut conn = self.pool.get().await?;
        let known = self.verifier.revocations();
        for (revocation, created_at) in revocations::since(&mut conn, self.seen - OVERLAP).await? {
            self.seen = self.seen.max(created_at);
            known.add(revocation);
        }
        known.set_known();
        known.forget_expired(now);
        revocations::forget_expired(&mut conn, now).await
    }
}

/// Revokes every token of a client, for as long as its youngest could live.
pub(crate) async fn revoke_client(
    app: &App,
    conn: &mut AsyncPgConnection,
    id: String,
    now: Timestamp,
) -> Result<Revocation, Error> {
    let until = now + LONGEST_LIFETIME + MARGIN;
    revoke(app, conn, Revocation { revoked: Revoked::Client(id), expires_at: until }, now).await
}

/// Revokes one token, until it would have expired.
pub(crate) async fn revoke_token(
    app: &App,
    conn: &mut AsyncPgConnection,
    claims: &Claims,
    now: Timestamp,
) -> Result<Revocation, Error> {
    let until = DateTime::from_timestamp(claims.exp, 0).unwrap_or(DateTime::<chrono::Utc>::MAX_UTC);
    revoke(
        app,
        conn,
        Revocation { revoked: Revoked::Token(claims.jti.clone()), expires_at: until },
        now,
    )
    .await
}

/// Records a revocation and announces it, in the caller's transaction. What was revoked before is
/// announced again: whoever missed it hears it this time.
async fn revoke(
    app: &App,
    conn: &mut AsyncPgConnection,
    revocation: Revocation,
    now: Timestamp,
) -> Result<Revocation, Error> {
    revocations::keep(conn, &revocation).await?;
    app.outbox.append(conn, now, [revocation.clone()]).await?;
    Ok(revocation)
}
