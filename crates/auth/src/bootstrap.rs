//! The first operator, which comes from the settings. All other clients are created through the API.

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
    audit::NewAuditRecord,
    credentials,
    error::Error,
    settings::Bootstrap,
    store::{
        audit,
        clients::{self, Client},
    },
};

/// Creates or updates the configured operator as soon as the database is reachable. The service is
/// not ready before that.
pub(crate) fn start(process: &Process, settings: &Bootstrap) {
    let Bootstrap { client_id, client_secret } = settings.clone();
    if client_id.is_empty() {
        return;
    }
    let done = Arc::new(AtomicBool::new(false));
    let is_done = done.clone();
    process.health.add("first operator", move || {
        let result = if is_done.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err("not created yet".to_owned())
        };
        async move { result }
    });
    let (pool, clock) = (process.pool.clone(), process.clock.clone());
    process.tasks.spawn("bootstrap", |stop| async move {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        while let Err(error) = ensure_operator(&pool, &clock, &client_id, &client_secret).await {
            tracing::warn!(error = chain(&error), "creating the first operator failed");
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
    conn.transaction(async |conn| {
        ensure_client(conn, id, now).await?;
        ensure_secret(conn, id, secret.expose_secret(), now).await
    })
    .await
}

async fn ensure_client(
    conn: &mut AsyncPgConnection,
    id: &str,
    now: Timestamp,
) -> Result<(), Error> {
    if clients::find(conn, id).await?.is_some() {
        return Ok(());
    }
    let client = Client {
        id: id.to_owned(),
        merchant: None,
        name: "first operator".to_owned(),
        scopes: [Scope::Operator].into_iter().collect(),
        created_at: now,
        revoked_at: None,
        last_used_at: None,
    };
    clients::insert(conn, &client).await
}

/// Replaces the secrets of the client by this one, unless it is valid already.
async fn ensure_secret(
    conn: &mut AsyncPgConnection,
    id: &str,
    secret: &str,
    now: Timestamp,
) -> Result<(), Error> {
    clients::lock(conn, id).await?;
    let valid = clients::valid_secrets(conn, id, now).await?;
    let hashes: Vec<_> = valid.iter().map(|secret| secret.hash.clone()).collect();
    if credentials::matches(secret, &hashes) {
        return Ok(());
    }
    for old in valid {
        clients::expire_secret(conn, old.id, now).await?;
    }
    clients::insert_secret(conn, id, credentials::hash(secret), now).await?;
    let record = NewAuditRecord {
        actor: "bootstrap",
        action: "client.secret_set",
        subject: format!("client/{id}"),
        merchant: None,
        detail: serde_json::json!({ "from": "configuration" }),
    };
    audit::insert(conn, record, now).await
}
