//! The first operator, from configuration: without one nobody could add anybody.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::access::Scope;
use platform::{Clock, Process, Timestamp, chain, database::Pool, retry::Backoff};
use secrecy::{ExposeSecret, SecretString};

use crate::{
    error::Error,
    secrets,
    settings::Bootstrap,
    store::{
        audit::{self, Entry},
        clients::{self, Client},
    },
};

/// Sees to it that the configured operator exists and its secret works, as soon as the database
/// is there. Until then the service is not ready: whoever waited for it would be refused.
pub(crate) fn start(process: &Process, settings: &Bootstrap) {
    let Bootstrap { client_id, client_secret } = settings.clone();
    if client_id.is_empty() {
        return;
    }
    let done = Arc::new(AtomicBool::new(false));
    let same = done.clone();
    process.health.add("first operator", move || {
        let missing = !same.load(Ordering::Relaxed);
        async move { if missing { Err("not set up yet".to_owned()) } else { Ok(()) } }
    });
    let (pool, clock) = (process.pool.clone(), process.clock.clone());
    process.tasks.spawn("bootstrap", |stop| async move {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        while let Err(error) = ensure_operator(&pool, &clock, &client_id, &client_secret).await {
            tracing::warn!(error = chain(&error), "the first operator is not set up yet");
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(backoff.pause()) => {}
            }
        }
        done.store(true, Ordering::Relaxed);
        stop.cancelled().await;
    });
}

async fn ensure_operator(
    pool: &Pool,
    clock: &Clock,
    id: &str,
    secret: &SecretString,
) -> Result<(), Error> {
    let now = clock.now();
    let mut conn = pool.get().await?;
    conn.transaction(async |conn| ensure_in(conn, id, secret, now).await).await
}

async fn ensure_in(
    conn: &mut AsyncPgConnection,
    id: &str,
    secret: &SecretString,
    now: Timestamp,
) -> Result<(), Error> {
    if clients::find(conn, id).await?.is_none() {
        let scopes = [Scope::Operator].into_iter().collect();
        let name = "first operator".to_owned();
        let client = Client {
            id: id.to_owned(),
            merchant: None,
            name,
            scopes,
            created_at: now,
            revoked_at: None,
        };
        clients::insert(conn, &client).await?;
    }
    clients::lock(conn, id).await?;
    let known = clients::secrets(conn, id, now).await?;
    let hashes: Vec<_> = known.iter().map(|secret| secret.hash.clone()).collect();
    if secrets::matches(secret.expose_secret(), &hashes) {
        return Ok(());
    }
    for old in known {
        clients::expire_secret(conn, old.id, now).await?;
    }
    clients::add_secret(conn, id, secrets::hash(secret.expose_secret()), now).await?;
    let subject = format!("client/{id}");
    let detail = serde_json::json!({ "from": "configuration" });
    audit::write(
        conn,
        Entry { actor: "bootstrap", action: "client.secret_set", subject, merchant: None, detail },
        now,
    )
    .await
}
