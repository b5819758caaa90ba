//! Revocation of tokens, clients and sessions. It takes effect at once in this process, and within
//! seconds in other replicas (which poll the table) and other services (which consume
//! `token.revoked.v1`).

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta};
use diesel_async::AsyncPgConnection;
use domain::access::{Revocation, Revoked};
use platform::{
    Clock, Process, Timestamp, chain,
    database::Pool,
    identity::{Claims, Verifier},
};
use uuid::Uuid;

use crate::{
    App,
    error::Error,
    store::revocations,
    token_lifetimes::{MAX_TOKEN_LIFETIME, PERSON_TOKEN_LIFETIME},
};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Every poll also reads this much time before the newest row, because transactions can commit out
/// of order.
const POLL_OVERLAP: TimeDelta = TimeDelta::seconds(30);
/// Another replica, whose clock may differ, can issue a token shortly after the revocation.
const CLOCK_SKEW: TimeDelta = TimeDelta::minutes(1);

/// Polls the table for the revocations of all replicas. The verifier accepts no token before the
/// first poll.
pub(crate) fn start_polling(process: &Process, verifier: Arc<Verifier>) {
    let mut poller = RevocationPoller {
        pool: process.pool.clone(),
        clock: process.clock.clone(),
        verifier,
        newest_created_at: Timestamp::UNIX_EPOCH,
    };
    process.tasks.spawn("revocations", |stop| async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = poller.run() => {}
        }
    });
}

struct RevocationPoller {
    pool: Pool,
    clock: Clock,
    verifier: Arc<Verifier>,
    newest_created_at: Timestamp,
}

impl RevocationPoller {
    async fn run(&mut self) {
        loop {
            if let Err(error) = self.poll().await {
                tracing::warn!(error = chain(&error), "polling revocations failed");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn poll(&mut self) -> Result<(), Error> {
        let mut conn = self.pool.get().await?;
        let now = revocations::database_time(&mut conn).await?.min(self.clock.now());
        let since = self.newest_created_at - POLL_OVERLAP;
        let revocations = self.verifier.revocations();
        for (revocation, created_at) in revocations::created_since(&mut conn, since).await? {
            self.newest_created_at = self.newest_created_at.max(created_at);
            revocations.add(revocation);
        }
        revocations.set_loaded();
        revocations.remove_expired(now);
        Ok(())
    }
}

/// Revokes all tokens of a client, until the newest of them expires.
pub(crate) async fn revoke_client(
    app: &App,
    conn: &mut AsyncPgConnection,
    id: String,
    now: Timestamp,
) -> Result<Revocation, Error> {
    let expires_at = now + MAX_TOKEN_LIFETIME + CLOCK_SKEW;
    let (revocation, _) =
        revoke(app, conn, Revocation { revoked: Revoked::Client(id), expires_at }, now).await?;
    Ok(revocation)
}

/// Revokes one token, until it expires. Returns the revocation, and whether it is new.
pub(crate) async fn revoke_token(
    app: &App,
    conn: &mut AsyncPgConnection,
    claims: &Claims,
    now: Timestamp,
) -> Result<(Revocation, bool), Error> {
    let expires_at = DateTime::from_timestamp(claims.exp, 0).unwrap_or(Timestamp::MAX_UTC);
    let revoked = Revoked::Token(claims.jti.clone());
    revoke(app, conn, Revocation { revoked, expires_at }, now).await
}

/// Revokes the tokens of a session, until the newest of them expires. This takes effect with the next
/// poll in this process too.
pub(crate) async fn revoke_session(
    app: &App,
    conn: &mut AsyncPgConnection,
    id: Uuid,
    now: Timestamp,
) -> Result<(), Error> {
    let expires_at = now + PERSON_TOKEN_LIFETIME + CLOCK_SKEW;
    let revoked = Revoked::Session(id.to_string());
    revoke(app, conn, Revocation { revoked, expires_at }, now).await?;
    Ok(())
}

/// Stores and publishes a revocation in the caller's transaction. A repeated revocation is published
/// again, so that it reaches a service that missed the first event. Returns it, and whether it was stored.
async fn revoke(
    app: &App,
    conn: &mut AsyncPgConnection,
    revocation: Revocation,
    now: Timestamp,
) -> Result<(Revocation, bool), Error> {
    let is_new = revocations::upsert(conn, &revocation).await?;
    app.outbox.append(conn, now, [revocation.clone()]).await?;
    Ok((revocation, is_new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_revocation_is_kept_until_both_clocks_say_that_it_expired() {
        let migrations = vec![messaging::MIGRATIONS, crate::MIGRATIONS];
        let database = testkit::Database::create(migrations).await;
        let pool = database.pool();
        let now = Clock::system().now();
        for (id, expires_in, clock_is_off) in [
            ("ahead", TimeDelta::days(1), TimeDelta::days(3)),
            ("behind", -TimeDelta::days(1), -TimeDelta::days(3)),
        ] {
            let revocation = Revocation {
                revoked: Revoked::Client(id.to_owned()),
                expires_at: now + expires_in,
            };
            revocations::upsert(&mut pool.get().await.unwrap(), &revocation).await.unwrap();
            let verifier = Arc::new(Verifier::new("test", Clock::system()));
            let mut poller = RevocationPoller {
                pool: pool.clone(),
                clock: Clock::from_fn(move || now + clock_is_off),
                verifier: verifier.clone(),
                newest_created_at: Timestamp::UNIX_EPOCH,
            };
            poller.poll().await.unwrap();
            assert!(verifier.revocations().covers("token", id), "{id}");
        }
    }
}
