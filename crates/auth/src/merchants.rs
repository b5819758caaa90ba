//! Merchants and their endpoints: every change is locked, versioned, recorded and announced in
//! one transaction.

use std::time::Duration;

use chrono::TimeDelta;
use diesel_async::AsyncConnection as _;
use domain::{
    access::MerchantId,
    merchant::{
        Endpoint, EndpointChange, Interface, Merchant, MerchantChanged, Sealed, Settings,
        SettingsChange, SigningSecret,
    },
};
use platform::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    App,
    error::Error,
    secrets,
    store::{
        audit::{self, Entry},
        merchants::{self, Stored},
        revocations,
    },
};

const REPUBLISH_BATCH: i64 = 200;
const REVOCATIONS_BATCH: usize = 1000;

pub(crate) async fn add(
    app: &App,
    actor: &str,
    id: MerchantId,
    settings: Settings,
) -> Result<Stored, Error> {
    let now = app.clock.now();
    let mut merchant = Merchant::new(id, settings);
    merchant.version = newer(merchant.version, now);
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        merchants::insert(conn, &merchant, now).await?;
        let detail = serde_json::to_value(&merchant.settings)?;
        audit::write(conn, entry(actor, "merchant.added", &merchant.identifier, detail), now)
            .await?;
        app.outbox.append(conn, now, [MerchantChanged { merchant: merchant.clone() }]).await?;
        Ok::<_, Error>(())
    })
    .await?;
    Ok(Stored { merchant, created_at: now, updated_at: now })
}

/// Changes settings. `asked` is what goes on record.
pub(crate) async fn set(
    app: &App,
    actor: &str,
    id: &str,
    change: SettingsChange,
    asked: Value,
) -> Result<Stored, Error> {
    let (stored, ()) = self::change(app, actor, id, "merchant.changed", |merchant, _| {
        change.apply(&mut merchant.settings);
        Ok(((), asked))
    })
    .await?;
    Ok(stored)
}

/// Sets where messages of an interface go. The first time this also makes a signing secret, which
/// is returned and not shown again, unless nothing is signed there.
pub(crate) async fn set_endpoint(
    app: &App,
    actor: &str,
    id: &str,
    interface: Interface,
    new: EndpointChange,
) -> Result<(Stored, Option<String>), Error> {
    change(app, actor, id, "endpoint.set", |merchant, now| {
        if new.url.is_none() && merchant.settings.base_url.is_none() {
            return Err(Error::NoAddress);
        }
        let context = interface.sealing_context(&merchant.identifier);
        let authentication = new.authentication.map(|secret| app.sealer.seal(&context, secret))?;
        let (made, kept) = match merchant.endpoints.get(&interface) {
            Some(endpoint) => (None, (endpoint.paused, endpoint.signing_secrets.clone())),
            None if interface == Interface::Variants => (None, (false, Vec::new())),
            None => {
                let secret = secrets::signing_secret()?;
                let sealed = sign_with(app.sealer.seal(&context, &secret)?, now);
                (Some(secret), (false, vec![sealed]))
            }
        };
        let (paused, signing_secrets) = kept;
        let EndpointChange { url, path, headers, timeout_ms, .. } = new;
        let detail =
            json!({ "interface": interface, "url": url, "path": path, "timeout_ms": timeout_ms });
        let endpoint =
            Endpoint { url, path, headers, authentication, timeout_ms, paused, signing_secrets };
        merchant.endpoints.insert(interface, endpoint);
        Ok((made, detail))
    })
    .await
}

pub(crate) async fn remove_endpoint(
    app: &App,
    actor: &str,
    id: &str,
    interface: Interface,
) -> Result<(), Error> {
    change(app, actor, id, "endpoint.removed", |merchant, _| {
        let removed = merchant.endpoints.remove(&interface);
        removed.ok_or_else(|| Error::NoEndpoint(merchant.identifier.clone(), interface))?;
        Ok(((), json!({ "interface": interface })))
    })
    .await?;
    Ok(())
}

/// Gives an endpoint a new signing secret; the one before signs beside it for `overlap` longer.
pub(crate) async fn rotate_secret(
    app: &App,
    actor: &str,
    id: &str,
    interface: Interface,
    overlap: Duration,
) -> Result<(Stored, String), Error> {
    if interface == Interface::Variants {
        return Err(Error::NotSigned(interface));
    }
    change(app, actor, id, "endpoint.secret_rotated", |merchant, now| {
        let context = interface.sealing_context(&merchant.identifier);
        let until = now + TimeDelta::from_std(overlap).unwrap_or(TimeDelta::zero());
        let secret = secrets::signing_secret()?;
        let endpoint = endpoint(merchant, interface)?;
        // Newest first: only the newest lives on beside the new one.
        endpoint.signing_secrets.truncate(1);
        for old in &mut endpoint.signing_secrets {
            old.expires_at = Some(until);
        }
        endpoint.signing_secrets.insert(0, sign_with(app.sealer.seal(&context, &secret)?, now));
        Ok((secret, json!({ "interface": interface, "old_secret_expires_at": until })))
    })
    .await
}

/// Pauses or resumes an endpoint.
pub(crate) async fn set_flow(
    app: &App,
    actor: &str,
    id: &str,
    interface: Interface,
    flow: Flow,
) -> Result<Stored, Error> {
    let action = match flow {
        Flow::Paused => "endpoint.paused",
        Flow::Running => "endpoint.resumed",
    };
    let (stored, ()) = change(app, actor, id, action, |merchant, _| {
        endpoint(merchant, interface)?.paused = flow == Flow::Paused;
        Ok(((), json!({ "interface": interface })))
    })
    .await?;
    Ok(stored)
}

/// Whether messages to an endpoint are sent or wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Paused,
    Running,
}

/// Announces every merchant, under a newer version, and every revocation again: for services whose
/// copy was lost, or is of a time that this database has forgotten.
pub(crate) async fn republish(app: &App, actor: &str) -> Result<u64, Error> {
    let now = app.clock.now();
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        merchants::renew(conn, newer(0, now)).await?;
        let (mut after, mut count) = (String::new(), 0);
        loop {
            let page = merchants::page(conn, &after, REPUBLISH_BATCH).await?;
            let Some(last) = page.last() else { break };
            after = last.merchant.identifier.to_string();
            count += u64::try_from(page.len()).unwrap_or(0);
            let changed =
                page.into_iter().map(|stored| MerchantChanged { merchant: stored.merchant });
            app.outbox.append(conn, now, changed).await?;
        }
        let in_force = revocations::in_force(conn, now).await?;
        for batch in in_force.chunks(REVOCATIONS_BATCH) {
            app.outbox.append(conn, now, batch.iter().cloned()).await?;
        }
        let (action, subject) = ("merchants.republished", "merchants".to_owned());
        let detail = json!({ "merchants": count });
        audit::write(conn, Entry { actor, action, subject, merchant: None, detail }, now).await?;
        Ok(count)
    })
    .await
}

/// The one way a merchant changes: `decide` alters it and says what goes on record.
async fn change<T: Send>(
    app: &App,
    actor: &str,
    id: &str,
    action: &'static str,
    decide: impl FnOnce(&mut Merchant, Timestamp) -> Result<(T, Value), Error> + Send,
) -> Result<(Stored, T), Error> {
    let now = app.clock.now();
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let mut stored = merchants::lock(conn, id).await?;
        let (value, detail) = decide(&mut stored.merchant, now)?;
        stored.merchant.version = newer(stored.merchant.version, now);
        stored.updated_at = now;
        merchants::save(conn, &stored.merchant, now).await?;
        audit::write(conn, entry(actor, action, &stored.merchant.identifier, detail), now).await?;
        app.outbox
            .append(conn, now, [MerchantChanged { merchant: stored.merchant.clone() }])
            .await?;
        Ok((stored, value))
    })
    .await
}

/// The next version. By the clock it is newer than all that were announced, also those that a
/// database restored from a backup has forgotten.
fn newer(version: i64, now: Timestamp) -> i64 {
    now.timestamp_millis().max(version + 1)
}

fn endpoint(merchant: &mut Merchant, interface: Interface) -> Result<&mut Endpoint<Sealed>, Error> {
    let missing = Error::NoEndpoint(merchant.identifier.clone(), interface);
    merchant.endpoints.get_mut(&interface).ok_or(missing)
}

fn sign_with(secret: Sealed, now: Timestamp) -> SigningSecret<Sealed> {
    SigningSecret { id: Uuid::now_v7(), secret, created_at: now, expires_at: None }
}

fn entry<'a>(
    actor: &'a str,
    action: &'static str,
    merchant: &'a MerchantId,
    detail: Value,
) -> Entry<'a> {
    Entry {
        actor,
        action,
        subject: format!("merchant/{merchant}"),
        merchant: Some(merchant),
        detail,
    }
}
