//! API clients: adding, rotating, revoking, and recognising them.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use diesel_async::AsyncConnection as _;
use domain::{
    access::{MerchantId, Scope, Scopes},
    json::{Object, array, parsed, text},
};
use moka::future::Cache;
use platform::Timestamp;
use uuid::Uuid;

use crate::{
    App,
    error::Error,
    revocations, secrets,
    store::{
        audit::{self, Entry},
        clients::{self, Client, SecretHash},
    },
};

const LONGEST_ID: usize = 255;
/// A client is read again after this long, so that a change made by another replica counts.
const REMEMBERED_FOR: Duration = Duration::from_secs(2);

/// A client and the secrets that prove it; nothing for an id nobody has.
#[derive(Clone)]
pub(crate) struct Known(Option<Arc<(Client, Vec<SecretHash>)>>);

impl Known {
    /// The client, if the secret is one of its own and it may still come in.
    pub(crate) fn prove(&self, secret: &str, now: Timestamp) -> Option<&Client> {
        let (client, known) = self.0.as_deref()?;
        let good =
            known.iter().filter(|known| known.expires_at.is_none_or(|expires_at| expires_at > now));
        let hashes: Vec<_> = good.map(|known| known.hash.clone()).collect();
        (secrets::matches(secret, &hashes) && client.revoked_at.is_none()).then_some(client)
    }
}

/// Clients that asked for a token lately, so that a grant seldom needs the database.
pub(crate) struct KnownClients(Cache<String, Known>);

impl KnownClients {
    pub(crate) fn new() -> Self {
        Self(Cache::builder().max_capacity(50_000).time_to_live(REMEMBERED_FOR).build())
    }

    /// Who has an id; nobody, without asking, when it [cannot be one](is_possible).
    pub(crate) async fn find(&self, app: &App, id: Option<&str>) -> Result<Known, Arc<Error>> {
        let Some(id) = id else { return Ok(Known(None)) };
        self.0.try_get_with(id.to_owned(), load(app, id)).await
    }

    async fn forget(&self, id: &str) {
        self.0.invalidate(id).await;
    }
}

/// Whether a client could have this id. Others never reach a map, a cache or the database.
pub(crate) fn is_possible(id: &str) -> bool {
    id.len() <= LONGEST_ID && !id.chars().any(char::is_control)
}

async fn load(app: &App, id: &str) -> Result<Known, Error> {
    let mut conn = app.pool.get().await?;
    let Some(client) = clients::find(&mut conn, id).await? else { return Ok(Known(None)) };
    let secrets = clients::secrets(&mut conn, id, app.clock.now()).await?;
    Ok(Known(Some(Arc::new((client, secrets)))))
}

/// A client that is asked for.
pub(crate) struct NewClient {
    pub(crate) merchant: Option<MerchantId>,
    pub(crate) name: String,
    pub(crate) scopes: Scopes,
}

impl NewClient {
    pub(crate) fn read(document: &Object<'_>) -> Option<Self> {
        document.reject_unknown(&["merchant", "name", "scopes"]);
        let merchant = document.optional("merchant", parsed(1..=63, str::parse::<MerchantId>));
        let name = document.required("name", text(1..=200));
        let scopes = document.required("scopes", array(1..=5, parsed(1..=20, str::parse::<Scope>)));
        let (merchant, scopes) = (merchant?, Scopes::from_iter(scopes?));
        if merchant.is_some() && scopes.contains(Scope::Operator) {
            document.invalid("scopes", "a merchant's client cannot be an operator");
            return None;
        }
        Some(Self { merchant, name: name?, scopes })
    }
}

/// Adds a client and returns it with its secret, which nobody will see again.
pub(crate) async fn add(app: &App, actor: &str, new: NewClient) -> Result<(Client, String), Error> {
    let (now, secret) = (app.clock.now(), secrets::client_secret()?);
    let id = format!("bh_{}", Uuid::now_v7().simple());
    let NewClient { merchant, name, scopes } = new;
    let client = Client { id, merchant, name, scopes, created_at: now, revoked_at: None };
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        clients::insert(conn, &client).await?;
        clients::add_secret(conn, &client.id, secrets::hash(&secret), now).await?;
        let detail =
            serde_json::json!({ "name": client.name, "scopes": client.scopes.to_string() });
        audit::write(conn, entry(actor, "client.added", &client, detail), now).await
    })
    .await?;
    Ok((client, secret))
}

/// Gives a client a new secret; the one before works for `overlap` longer, older ones no more.
pub(crate) async fn rotate(
    app: &App,
    actor: &str,
    id: &str,
    overlap: Duration,
) -> Result<(Client, String), Error> {
    // The next start would bring the old secret back.
    if id == app.settings.bootstrap.client_id {
        return Err(Error::SecretIsSetting(id.to_owned()));
    }
    let (now, secret) = (app.clock.now(), secrets::client_secret()?);
    let until = now + TimeDelta::from_std(overlap).unwrap_or(TimeDelta::zero());
    let mut conn = app.pool.get().await?;
    let client = conn
        .transaction(async |conn| {
            let client = clients::lock(conn, id).await?;
            if client.revoked_at.is_some() {
                return Err(Error::ClientRevoked(id.to_owned()));
            }
            for (age, old) in clients::secrets(conn, id, now).await?.into_iter().enumerate() {
                let end = if age == 0 { until } else { now };
                clients::expire_secret(conn, old.id, old.expires_at.unwrap_or(end).min(end))
                    .await?;
            }
            clients::add_secret(conn, id, secrets::hash(&secret), now).await?;
            let detail = serde_json::json!({ "old_secret_expires_at": until });
            audit::write(conn, entry(actor, "client.secret_rotated", &client, detail), now).await?;
            Ok(client)
        })
        .await?;
    app.clients.forget(id).await;
    Ok((client, secret))
}

/// Shuts a client out, with every token it holds. Doing so again changes nothing here and tells
/// everyone once more.
pub(crate) async fn revoke(app: &App, actor: &str, id: &str) -> Result<Client, Error> {
    let now = app.clock.now();
    let mut conn = app.pool.get().await?;
    let (client, revocation) = conn
        .transaction(async |conn| {
            let mut client = clients::lock(conn, id).await?;
            if client.revoked_at.is_none() {
                client.revoked_at = Some(now);
                clients::set_revoked(conn, id, now).await?;
                audit::write(
                    conn,
                    entry(actor, "client.revoked", &client, serde_json::json!({})),
                    now,
                )
                .await?;
            }
            let revocation = revocations::revoke_client(app, conn, id.to_owned(), now).await?;
            Ok::<_, Error>((client, revocation))
        })
        .await?;
    app.verifier.revocations().add(revocation);
    app.clients.forget(id).await;
    Ok(client)
}

fn entry<'a>(
    actor: &'a str,
    action: &'static str,
    client: &'a Client,
    detail: serde_json::Value,
) -> Entry<'a> {
    Entry {
        actor,
        action,
        subject: format!("client/{}", client.id),
        merchant: client.merchant.as_ref(),
        detail,
    }
}
