//! Endpoints: the URLs that receive a merchant's messages, and the secrets that sign them.

use std::collections::BTreeMap;

use domain::delivery::EndpointPaused;
use domain::json::FieldError;
use domain::merchant::{
    Authentication, Endpoint, Interface, Merchant, Sealed, SecretUrl, SigningSecret,
};
use platform::{
    ClientIdentity, IdentityError, Timestamp,
    idempotency::{self, IdempotencyKey},
    sealing::SealError,
};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    App,
    credentials::{self, Rotation},
    error::Error,
    merchants::{
        Condition, MerchantView, Redacted, check_version, redact, redact_all, update_in,
        update_with,
    },
    sealed_response,
    store::merchants::{self, StoredMerchant},
};

/// An endpoint, with its signing secret if the request created one.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointView {
    interface: String,
    endpoint: Endpoint<Redacted>,
    /// The secret that signs messages (Standard Webhooks). Returned only when it is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_secret: Option<String>,
}

impl EndpointView {
    fn new(
        mut stored: StoredMerchant,
        interface: Interface,
        signing_secret: Option<String>,
    ) -> Result<Self, Error> {
        let endpoint = redact(find(&mut stored.merchant, interface)?);
        Ok(Self { interface: interface.to_string(), endpoint, signing_secret })
    }
}

/// The endpoints of a merchant, by interface.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointList {
    endpoints: BTreeMap<String, Endpoint<Redacted>>,
}

pub(crate) async fn list(app: &App, merchant: &str) -> Result<EndpointList, Error> {
    let stored = merchants::find(&mut *app.pool.get().await?, merchant).await?;
    Ok(EndpointList { endpoints: redact_all(&stored.merchant) })
}

/// How an endpoint is replaced.
pub(crate) struct SetOptions<'a> {
    pub(crate) key: Option<IdempotencyKey<'a>>,
    pub(crate) condition: Condition,
    /// Whether a URL without a query keeps the query that is stored for it.
    pub(crate) keep_queries: bool,
}

/// A response that is stored with its key. The request has secrets, so it is compared here and not by its digest,
/// which is not encrypted.
#[derive(Serialize, Deserialize)]
struct StoredResponse {
    request: Value,
    response: Value,
}

/// Creates or replaces an endpoint, and returns an [`EndpointView`]. A new endpoint gets a signing secret, unless
/// requests to the interface are not signed. A request with a key that was used gets the first response.
pub(crate) async fn set(
    app: &App,
    actor: &str,
    merchant: &str,
    interface: Interface,
    new: Endpoint<String>,
    options: SetOptions<'_>,
) -> Result<Value, Error> {
    let certificate_expires_at = certificate_expires_at(&new.authentication)?;
    let change = |merchant: &mut Merchant, now: Timestamp| {
        if options.condition.must_be_new && merchant.endpoints.contains_key(&interface) {
            return Err(Error::EndpointExists(merchant.identifier.clone(), interface));
        }
        check_version(merchant, options.condition.expected_version)?;
        if new.url.is_none() && merchant.settings.base_url.is_none() {
            return Err(Error::NoBaseUrl(merchant.identifier.clone()));
        }
        let context = interface.sealing_context(&merchant.identifier);
        let mut endpoint = new.map(|secret| app.sealer.seal(&context, secret))?;
        if let Some(stored) = merchant.endpoints.get(&interface).filter(|_| options.keep_queries) {
            keep_queries(stored, &mut endpoint);
        }
        let (secret, paused, signing_secrets) = match merchant.endpoints.get(&interface) {
            Some(endpoint) => (None, endpoint.paused, endpoint.signing_secrets.clone()),
            None if interface == Interface::Variants => (None, false, Vec::new()),
            None => {
                let secret = credentials::generate_signing_secret()?;
                let sealed = signing_secret(app.sealer.seal(&context, &secret)?, now);
                (Some(secret), false, vec![sealed])
            }
        };
        (endpoint.paused, endpoint.signing_secrets) = (paused, signing_secrets);
        endpoint.certificate_expires_at = certificate_expires_at;
        let detail = set_detail(interface, &endpoint);
        let stored = merchant.endpoints.get(&interface);
        if !stored.is_some_and(|stored| is_same(app, &context, stored, &endpoint)) {
            merchant.endpoints.insert(interface, Box::new(endpoint));
        }
        Ok((secret, detail))
    };
    let request = serde_json::to_value(&new)?;
    let context = format!("response about endpoint {interface} of {merchant}");
    let stored = app
        .pool
        .transaction_of(merchant, async |conn| {
            idempotency::run(conn, options.key.as_ref(), app.clock.now(), async |conn| {
                let target = (merchant, "endpoint.set");
                let (stored, secret) = update_in(app, conn, actor, target, &change).await?;
                let view = EndpointView::new(stored, interface, secret)?;
                let response = serde_json::to_value(&view)?;
                let stored = StoredResponse { request: request.clone(), response };
                sealed_response::seal(app, &context, &stored)
            })
            .await
        })
        .await?;
    let stored: StoredResponse = sealed_response::open(app, &context, &stored)?;
    if stored.request == request {
        Ok(stored.response)
    } else {
        let detail = "this Idempotency-Key was used for a different request";
        Err(FieldError::invalid("$", detail).into())
    }
}

/// Whether two endpoints have the same values. Encryption with the same key gives another text each time; with another
/// key, the endpoint is a new one, because a key can be removed only when nothing needs it.
fn is_same(app: &App, context: &str, stored: &Endpoint<Sealed>, new: &Endpoint<Sealed>) -> bool {
    let open = |endpoint: &Endpoint<Sealed>| {
        endpoint.map(|secret| {
            let key = secret.0.split('.').next().unwrap_or_default();
            let opened = app.sealer.open(context, secret)?;
            Ok::<_, SealError>(format!("{key}.{}", opened.expose_secret()))
        })
    };
    matches!((open(stored), open(new)), (Ok(stored), Ok(new)) if stored == new)
}

/// The detail of the audit record of an endpoint that was set.
fn set_detail(interface: Interface, endpoint: &Endpoint<Sealed>) -> Value {
    let endpoint = redact(endpoint);
    let Endpoint { url, path, headers, authentication, timeout_ms, version, .. } = endpoint;
    json!({
        "interface": interface, "url": url, "path": path, "headers": headers,
        "authentication": authentication, "timeout_ms": timeout_ms, "version": version,
        "recovery_replay_days": endpoint.recovery_replay_days,
    })
}

/// The end of the client certificate. A private key of another certificate is rejected.
fn certificate_expires_at(
    authentication: &Authentication<String>,
) -> Result<Option<Timestamp>, Error> {
    let Authentication::ClientCertificate { certificate, private_key } = authentication else {
        return Ok(None);
    };
    let identity = ClientIdentity::parse(certificate, private_key).map_err(|error| {
        let field = match error {
            IdentityError::Certificate => "$.authentication.certificate",
            IdentityError::PrivateKey | IdentityError::Mismatch => "$.authentication.private_key",
        };
        FieldError::invalid(field, error.to_string())
    })?;
    Ok(Some(identity.expires_at))
}

/// Keeps the queries of URLs that are the same without them. The queries are secrets, so a caller that has read
/// the endpoint cannot send them again.
fn keep_queries(stored: &Endpoint<Sealed>, new: &mut Endpoint<Sealed>) {
    let keep = |stored: &SecretUrl<Sealed>, new: &mut SecretUrl<Sealed>| {
        if new.query.is_none() && new.base == stored.base {
            new.query.clone_from(&stored.query);
        }
    };
    if let (Some(stored), Some(new)) = (&stored.url, &mut new.url) {
        keep(stored, new);
    }
    if let (
        Authentication::Oauth2 { token_url: stored, .. },
        Authentication::Oauth2 { token_url: new, .. },
    ) = (&stored.authentication, &mut new.authentication)
    {
        keep(stored, new);
    }
}

pub(crate) async fn delete(
    app: &App,
    actor: &str,
    merchant: &str,
    interface: Interface,
    expected_version: Option<i64>,
) -> Result<(), Error> {
    update_with(app, actor, merchant, "endpoint.deleted", |merchant, _| {
        find(merchant, interface)?;
        check_version(merchant, expected_version)?;
        merchant.endpoints.remove(&interface);
        Ok(((), json!({ "interface": interface })))
    })
    .await?;
    Ok(())
}

/// Gives an endpoint a new signing secret. Messages carry the signatures of both secrets until the
/// previous one expires after the overlap. Older ones end at once, which needs `force` while they sign. A request
/// with a key that was used gets the first new secret.
pub(crate) async fn rotate_secret(
    app: &App,
    actor: &str,
    merchant: &str,
    interface: Interface,
    (key, rotation): (Option<&IdempotencyKey<'_>>, &Rotation),
) -> Result<Value, Error> {
    if interface == Interface::Variants {
        return Err(Error::NotSigned(interface));
    }
    let target = (merchant, "endpoint.secret_rotated");
    let change = |merchant: &mut Merchant, now: Timestamp| {
        let context = interface.sealing_context(&merchant.identifier);
        let overlap_ends_at = rotation.overlap_ends_at(now);
        let secret = credentials::generate_signing_secret()?;
        let endpoint = find(merchant, interface)?;
        if !rotation.force {
            check_expired(interface, &endpoint.signing_secrets, now)?;
        }
        // The first secret is the newest; older ones are dropped.
        endpoint.signing_secrets.truncate(1);
        for old in &mut endpoint.signing_secrets {
            old.expires_at = Some(overlap_ends_at);
        }
        let sealed = app.sealer.seal(&context, &secret)?;
        endpoint.signing_secrets.insert(0, signing_secret(sealed.clone(), now));
        Ok((sealed, json!({ "interface": interface, "old_secret_expires_at": overlap_ends_at })))
    };
    let stored = app
        .pool
        .transaction_of(merchant, async |conn| {
            idempotency::run(conn, key, app.clock.now(), async |conn| {
                let (stored, sealed) = update_in(app, conn, actor, target, &change).await?;
                EndpointView::new(stored, interface, Some(sealed.0))
            })
            .await
        })
        .await?;
    open_secret(app, merchant, interface, &stored)
}

/// Decrypts the signing secret in a response that was stored with its idempotency key.
fn open_secret(
    app: &App,
    merchant: &str,
    interface: Interface,
    stored: &str,
) -> Result<Value, Error> {
    let mut view: Value = serde_json::from_str(stored)?;
    if let Some(Value::String(secret)) = view.get_mut("signing_secret") {
        let missing = |_invalid| Error::MerchantNotFound(merchant.to_owned());
        let context = interface.sealing_context(&merchant.parse().map_err(missing)?);
        let opened = app.sealer.open(&context, &Sealed(std::mem::take(secret)))?;
        opened.expose_secret().clone_into(secret);
    }
    Ok(view)
}

/// Rejects a rotation that would drop a secret that still signs. The newest secret is not dropped.
fn check_expired(
    interface: Interface,
    secrets: &[SigningSecret<Sealed>],
    now: Timestamp,
) -> Result<(), Error> {
    let signing = |secret: &&SigningSecret<Sealed>| secret.expires_at.is_none_or(|end| end > now);
    match secrets.iter().skip(1).find(signing) {
        Some(&SigningSecret { created_at, expires_at, .. }) => {
            let expires_at = expires_at.unwrap_or(now);
            Err(Error::SigningSecretInUse { interface, created_at, expires_at })
        }
        None => Ok(()),
    }
}

pub(crate) async fn set_paused(
    app: &App,
    actor: &str,
    merchant: &str,
    interface: Interface,
    paused: bool,
) -> Result<MerchantView, Error> {
    let action = if paused { "endpoint.paused" } else { "endpoint.resumed" };
    let change = |merchant: &mut Merchant, now: Timestamp| {
        let endpoint = find(merchant, interface)?;
        let is_paused_now = paused && !endpoint.paused;
        endpoint.paused = paused;
        let merchant = merchant.identifier.clone();
        let event = EndpointPaused { merchant, interface, paused_at: now };
        Ok((is_paused_now.then_some(event), json!({ "interface": interface })))
    };
    let stored = app
        .pool
        .transaction_of(merchant, async |conn| {
            let target = (merchant, action);
            let (stored, event) = update_in(app, conn, actor, target, &change).await?;
            app.outbox.append(conn, stored.updated_at, event).await?;
            Ok::<_, Error>(stored)
        })
        .await?;
    MerchantView::new(app, stored).await
}

fn find(merchant: &mut Merchant, interface: Interface) -> Result<&mut Endpoint<Sealed>, Error> {
    let missing = Error::EndpointNotFound(merchant.identifier.clone(), interface);
    merchant.endpoints.get_mut(&interface).map(Box::as_mut).ok_or(missing)
}

fn signing_secret(secret: Sealed, now: Timestamp) -> SigningSecret<Sealed> {
    SigningSecret { id: Uuid::now_v7(), secret, created_at: now, expires_at: None }
}
