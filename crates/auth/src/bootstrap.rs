//! The first operator and the client of the returns portal, which come from the settings. All other clients
//! are created through the API.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use diesel_async::AsyncPgConnection;
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

/// A client from the settings.
struct Configured {
    name: &'static str,
    scope: Scope,
    id: String,
    secret: SecretString,
}

/// Creates the configured clients as soon as the database is reachable. The service is not ready before that. A
/// client that exists is not updated; only its secret is replaced if it differs.
pub(crate) fn start(process: &Process, settings: &Bootstrap) {
    let Bootstrap { client_id, client_secret, portal_client_id, portal_client_secret } =
        settings.clone();
    let operator = Configured {
        name: "first operator",
        scope: Scope::Operator,
        id: client_id,
        secret: client_secret,
    };
    let portal = Configured {
        name: "portal client",
        scope: Scope::Shopper,
        id: portal_client_id,
        secret: portal_client_secret,
    };
    for client in [operator, portal].into_iter().filter(|client| !client.id.is_empty()) {
        start_creating(process, client);
    }
}

/// Starts a task that creates the client, or replaces the secret of an existing one. The service is ready when the task
/// is done.
fn start_creating(process: &Process, client: Configured) {
    let done = Arc::new(AtomicBool::new(false));
    let is_done = done.clone();
    process.health.add(client.name, move || {
        let result = if is_done.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err("not created yet".to_owned())
        };
        async move { result }
    });
    let pool = process.pool.clone();
    let clock = process.clock.clone();
    process.tasks.spawn(client.name, |stop| async move {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        while let Err(error) = create_or_replace_secret(&pool, &clock, &client).await {
            tracing::warn!(error = chain(&error), "creating the {} failed", client.name);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(backoff.pause()) => {}
            }
        }
        done.store(true, Ordering::Relaxed);
        stop.cancelled().await;
    });
}

async fn create_or_replace_secret(
    pool: &Pool,
    clock: &Clock,
    client: &Configured,
) -> Result<(), Error> {
    let now = clock.now();
    let mut conn = pool.get().await?;
    conn.transaction(async |conn| {
        ensure_client(conn, client, now).await?;
        ensure_secret(conn, &client.id, client.secret.expose_secret(), now).await
    })
    .await
}

async fn ensure_client(
    conn: &mut AsyncPgConnection,
    configured: &Configured,
    now: Timestamp,
) -> Result<(), Error> {
    if clients::find(conn, &configured.id).await?.is_some() {
        return Ok(());
    }
    let client = Client {
        id: configured.id.clone(),
        merchant: None,
        name: configured.name.to_owned(),
        scopes: [configured.scope].into_iter().collect(),
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
    if credentials::position(secret, valid.iter().map(|secret| &*secret.hash)).is_some() {
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
