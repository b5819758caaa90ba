//! API clients: create them, rotate their secrets, revoke them.

use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::AsyncPgConnection;
use domain::{
    access::{MerchantId, Scope, Scopes},
    json::{Object, array, parsed, printable_text},
    merchant::Sealed,
};
use platform::{
    Timestamp, chain,
    idempotency::{self, IdempotencyKey},
};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    App,
    audit::NewAuditRecord,
    client_cache::AuthenticatedClient,
    credentials::{self, Rotation},
    error::Error,
    revocations,
    store::{
        audit,
        clients::{self, Client, SecretHash},
    },
};

/// A secret that was used within this time is in use. A client requests a token when the last one has
/// expired, after 25 hours by default.
const IN_USE: TimeDelta = TimeDelta::hours(26);
/// `last_used_at` is stored again when the stored time is older than this.
const LAST_USED_PRECISION: TimeDelta = TimeDelta::minutes(1);

/// An API client.
#[derive(Serialize, Deserialize, ToSchema)]
pub(crate) struct ClientView {
    client_id: String,
    merchant: Option<String>,
    name: String,
    #[schema(example = "orders returns")]
    scope: String,
    created_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
    /// Time of the latest token request, to within a minute. Null if the client never got a token.
    last_used_at: Option<DateTime<Utc>>,
    /// Returned only when the secret is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    /// Time until which the previous secret is valid. Returned only when the secret is rotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_expires_at: Option<DateTime<Utc>>,
}

impl ClientView {
    pub(crate) fn new(client: Client, client_secret: Option<String>) -> Self {
        Self {
            client_id: client.id,
            merchant: client.merchant.as_ref().map(MerchantId::to_string),
            name: client.name,
            scope: client.scopes.to_string(),
            created_at: client.created_at,
            revoked_at: client.revoked_at,
            last_used_at: client.last_used_at,
            client_secret,
            previous_secret_expires_at: None,
        }
    }

    /// Encrypts the secret of a response that is stored with its idempotency key.
    fn seal(mut self, app: &App) -> Result<Self, Error> {
        let context = self.sealing_context();
        if let Some(secret) = &mut self.client_secret {
            *secret = app.sealer.seal(&context, secret)?.0;
        }
        Ok(self)
    }

    /// Reads a response that was stored with its idempotency key.
    fn open(app: &App, stored: &str) -> Result<Self, Error> {
        let mut view: Self = serde_json::from_str(stored)?;
        let context = view.sealing_context();
        if let Some(secret) = view.client_secret.take() {
            let opened = app.sealer.open(&context, &Sealed(secret))?;
            view.client_secret = Some(opened.expose_secret().to_owned());
        }
        Ok(view)
    }

    fn sealing_context(&self) -> String {
        format!("response about client {}", self.client_id)
    }
}

/// A page of clients.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClientPage {
    pub(crate) clients: Vec<ClientView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A client to be created. A client without a merchant belongs to a warehouse, a carrier, an
/// operator or the portal. With a token of a merchant the client belongs to this merchant, and its scopes can be
/// `orders`, `returns`, `read`, `replay` and `manage`. A client with `manage` needs a merchant.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateClientRequest)]
pub(crate) struct NewClient {
    #[schema(value_type = Option<String>, pattern = "^[a-z0-9][a-z0-9-]{0,62}$")]
    pub(crate) merchant: Option<MerchantId>,
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    #[schema(value_type = Vec<Scope>, min_items = 1, max_items = 9, example = json!(["orders", "returns"]))]
    scopes: Scopes,
}

impl NewClient {
    /// Reads a client that an operator creates or, with `own`, that this merchant creates.
    pub(crate) fn read(body: &Object<'_>, own: Option<&MerchantId>) -> Option<Self> {
        body.reject_unknown(&["merchant", "name", "scopes"]);
        let merchant = body.optional("merchant", parsed(1..=63, str::parse::<MerchantId>));
        let name = body.required("name", printable_text(1..=200));
        let scope = parsed(1..=20, |text| match text.parse::<Scope>() {
            Ok(scope) if own.is_some() && !Scope::OF_MERCHANTS.contains(&scope) => {
                Err(format!("a merchant cannot give the scope {scope}: {}", scopes_of_merchants()))
            }
            parsed => parsed.map_err(|error| error.to_string()),
        });
        let scopes = body.required("scopes", array(1..=Scope::ALL.len(), scope));
        let merchant = merchant?.or_else(|| own.cloned());
        let scopes = Scopes::from_iter(scopes?);
        if merchant.is_some() && scopes.contains(Scope::Operator) {
            body.invalid("scopes", "a client of a merchant cannot be an operator");
            return None;
        }
        if merchant.is_some() && scopes.contains(Scope::Shopper) {
            body.invalid("scopes", "a client of a merchant cannot have the scope shopper");
            return None;
        }
        if merchant.is_none() && scopes.contains(Scope::Manage) {
            body.invalid("merchant", "a client with the scope manage needs a merchant");
            return None;
        }
        Some(Self { merchant, name: name?, scopes })
    }
}

fn scopes_of_merchants() -> String {
    format!("allowed are {}", Scope::OF_MERCHANTS.map(Scope::as_str).join(", "))
}

/// Creates a client and its first secret. A request with a key that was used gets the first client and its secret.
pub(crate) async fn create(
    app: &App,
    actor: &str,
    key: Option<&IdempotencyKey<'_>>,
    new: NewClient,
) -> Result<ClientView, Error> {
    let now = app.clock.now();
    let secret = credentials::generate_client_secret()?;
    let id = format!("bh_{}", Uuid::now_v7().simple());
    let NewClient { merchant, name, scopes } = new;
    let client = Client {
        id,
        merchant,
        name,
        scopes,
        created_at: now,
        revoked_at: None,
        last_used_at: None,
    };
    let mut conn = app.pool.get().await?;
    let stored = conn
        .transaction(async |conn| {
            idempotency::run(conn, key, now, async |conn| {
                clients::insert(conn, &client).await?;
                clients::insert_secret(conn, &client.id, credentials::hash(&secret), now).await?;
                let detail = json!({ "name": client.name, "scopes": client.scopes.to_string() });
                audit::insert(conn, record(actor, "client.created", &client, detail), now).await?;
                ClientView::new(client.clone(), Some(secret.clone())).seal(app)
            })
            .await
        })
        .await?;
    ClientView::open(app, &stored)
}

/// Gives a client a new secret. The previous secret expires after the overlap, older ones at once. A secret
/// that is in use ends at once only with `force`. A request with a key that was used gets the first new secret.
pub(crate) async fn rotate_secret(
    app: &App,
    actor: &str,
    own: Option<&MerchantId>,
    id: &str,
    (key, rotation): (Option<&IdempotencyKey<'_>>, &Rotation),
) -> Result<ClientView, Error> {
    let now = app.clock.now();
    let secret = credentials::generate_client_secret()?;
    let overlap_ends_at = rotation.overlap_ends_at(now);
    let stored = app
        .pool
        .transaction_of(id, async |conn| {
            idempotency::run(conn, key, now, async |conn| {
                let client = lock(conn, own, id).await?;
                // The next start of the service would restore the configured secret.
                if app.settings.bootstrap.has(id) {
                    return Err(Error::SecretIsSetting(id.to_owned()));
                }
                if client.revoked_at.is_some() {
                    return Err(Error::ClientRevoked(id.to_owned()));
                }
                let expires_at = expire_secrets(conn, id, rotation, now).await?;
                clients::insert_secret(conn, id, credentials::hash(&secret), now).await?;
                let detail = json!({ "old_secret_expires_at": overlap_ends_at });
                let record = record(actor, "client.secret_rotated", &client, detail);
                audit::insert(conn, record, now).await?;
                let view = ClientView::new(client, Some(secret.clone())).seal(app)?;
                Ok(ClientView { previous_secret_expires_at: expires_at, ..view })
            })
            .await
        })
        .await?;
    app.client_cache.remove(id).await;
    ClientView::open(app, &stored)
}

/// Ends the valid secrets of a client for a new one. Returns the end of the newest.
async fn expire_secrets(
    conn: &mut AsyncPgConnection,
    id: &str,
    rotation: &Rotation,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let mut newest_expires_at = None;
    for (age, old) in clients::valid_secrets(conn, id, now).await?.into_iter().enumerate() {
        let end = if age == 0 { rotation.overlap_ends_at(now) } else { now };
        let expires_at = old.expires_at.unwrap_or(end).min(end);
        if !rotation.force {
            check_expiry(id, &old, expires_at)?;
        }
        if expires_at <= now && !rotation.force {
            check_unused(id, &old, now)?;
        }
        clients::expire_secret(conn, old.id, expires_at).await?;
        newest_expires_at = newest_expires_at.or(Some(expires_at));
    }
    Ok(newest_expires_at)
}

/// Rejects a rotation that would end a secret before the time that an earlier rotation set.
fn check_expiry(client: &str, secret: &SecretHash, ends_at: Timestamp) -> Result<(), Error> {
    match secret.expires_at {
        Some(expires_at) if ends_at < expires_at => Err(Error::SecretStillValid {
            client: client.to_owned(),
            created_at: secret.created_at,
            expires_at,
        }),
        _ => Ok(()),
    }
}

/// Rejects a secret that is in use.
fn check_unused(client: &str, secret: &SecretHash, now: Timestamp) -> Result<(), Error> {
    match secret.last_used_at {
        Some(last_used_at) if now - last_used_at < IN_USE => Err(Error::SecretInUse {
            client: client.to_owned(),
            created_at: secret.created_at,
            last_used_at,
        }),
        _ => Ok(()),
    }
}

/// Revokes a client and all its tokens. Revoking it again publishes the revocation again.
pub(crate) async fn revoke(
    app: &App,
    actor: &str,
    own: Option<&MerchantId>,
    id: &str,
) -> Result<ClientView, Error> {
    let now = app.clock.now();
    let (client, revocation) = app
        .pool
        .transaction_of(id, async |conn| {
            let mut client = lock(conn, own, id).await?;
            if client.revoked_at.is_none() {
                client.revoked_at = Some(now);
                clients::set_revoked(conn, id, now).await?;
                let record = record(actor, "client.revoked", &client, json!({}));
                audit::insert(conn, record, now).await?;
            }
            let revocation = revocations::revoke_client(app, conn, id.to_owned(), now).await?;
            Ok::<_, Error>((client, revocation))
        })
        .await?;
    app.verifier.revocations().add(revocation);
    app.client_cache.remove(id).await;
    Ok(ClientView::new(client, None))
}

/// Locks a client until the transaction ends. With `own`, a client that does not belong to this merchant
/// counts as missing.
async fn lock(
    conn: &mut AsyncPgConnection,
    own: Option<&MerchantId>,
    id: &str,
) -> Result<Client, Error> {
    let client = clients::lock(conn, id).await?;
    if own.is_some() && client.merchant.as_ref() != own {
        return Err(Error::ClientNotFound(id.to_owned()));
    }
    Ok(client)
}

/// Stores the time at which a client got a token with a secret, at most once a minute. A failure is only
/// logged, because the client needs the token more than the time.
pub(crate) async fn record_use(app: &App, authenticated: &AuthenticatedClient) {
    let AuthenticatedClient { client, secret } = authenticated;
    let now = app.clock.now();
    if secret.last_used_at.is_some_and(|at| now - at < LAST_USED_PRECISION) {
        return;
    }
    let stored = async {
        let mut conn = app.pool.get().await?;
        let stored_before = now - LAST_USED_PRECISION;
        clients::set_last_used(&mut conn, &client.id, secret.id, now, stored_before).await
    };
    match stored.await {
        // The next request reads the new time.
        Ok(()) => app.client_cache.remove(&client.id).await,
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(client_id = client.id, error, "storing last_used_at failed");
        }
    }
}

fn record<'a>(
    actor: &'a str,
    action: &'static str,
    client: &'a Client,
    detail: Value,
) -> NewAuditRecord<'a> {
    let subject = format!("client/{}", client.id);
    NewAuditRecord { actor, action, subject, merchant: client.merchant.as_ref(), detail }
}
