//! Merchants and their settings.
//!
//! Every change locks the merchant, increments its version, writes an audit record and publishes
//! `merchant.changed.v1`, in one transaction. A request that changes nothing does none of this. A change of the rules for
//! returns also stores them as a version.

use std::{collections::BTreeMap, convert::Infallible, fmt};

use chrono::{DateTime, Utc};
use diesel_async::AsyncPgConnection;
use domain::{
    access::MerchantId,
    json::{Document, ValidationError, object},
    merchant::{
        Endpoint, Merchant, MerchantChanged, PolicyWarning, REDACTED, Sealed, Settings,
        SettingsChange,
    },
};
use platform::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    App,
    audit::NewAuditRecord,
    error::Error,
    store::{
        audit,
        merchants::{self, StoredMerchant},
        policy_versions, revocations,
    },
};

const REPUBLISH_BATCH_SIZE: i64 = 200;
const REVOCATION_BATCH_SIZE: usize = 1000;

/// The placeholder of a secret in responses.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) enum Redacted {
    #[serde(rename = "********")]
    Redacted,
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// A merchant with its settings and endpoints.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MerchantView {
    #[schema(example = "acme")]
    identifier: String,
    /// Grows with every change and every republication.
    version: i64,
    #[serde(flatten)]
    settings: Settings,
    endpoints: BTreeMap<String, Endpoint<Redacted>>,
    /// Rules that have no effect as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    policy_warnings: Vec<PolicyWarning>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl MerchantView {
    pub(crate) async fn new(
        app: &App,
        StoredMerchant { merchant, created_at, updated_at }: StoredMerchant,
    ) -> Result<Self, Error> {
        Ok(Self {
            policy_warnings: app.policy_warnings.of(&merchant).await?,
            identifier: merchant.identifier.to_string(),
            version: merchant.version,
            endpoints: redact_all(&merchant),
            settings: merchant.settings,
            created_at,
            updated_at,
        })
    }
}

/// The endpoints of a merchant without their secrets, by interface.
pub(crate) fn redact_all(merchant: &Merchant) -> BTreeMap<String, Endpoint<Redacted>> {
    let endpoints = merchant.endpoints.iter();
    endpoints.map(|(interface, endpoint)| (interface.to_string(), redact(endpoint))).collect()
}

/// Replaces the secrets of an endpoint by placeholders.
pub(crate) fn redact(endpoint: &Endpoint<Sealed>) -> Endpoint<Redacted> {
    let Ok(redacted) = endpoint.map(|_| Ok::<_, Infallible>(Redacted::Redacted));
    redacted
}

/// A page of merchants.
#[derive(Serialize, ToSchema)]
pub(crate) struct MerchantPage {
    pub(crate) merchants: Vec<MerchantView>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

pub(crate) async fn create(
    app: &App,
    actor: &str,
    id: MerchantId,
    settings: Settings,
) -> Result<MerchantView, Error> {
    let now = app.clock.now();
    let mut merchant = Merchant::new(id, settings);
    merchant.version = next_version(merchant.version, now);
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        merchants::insert(conn, &merchant, now).await?;
        if !merchant.settings.policy.rules.is_empty() {
            policy_versions::insert(conn, &merchant, actor, now).await?;
        }
        let detail = serde_json::to_value(&merchant.settings)?;
        let record = record(actor, "merchant.created", &merchant.identifier, detail);
        audit::insert(conn, record, now).await?;
        app.outbox.append(conn, now, [MerchantChanged { merchant: merchant.clone() }]).await?;
        Ok::<_, Error>(())
    })
    .await?;
    MerchantView::new(app, StoredMerchant { merchant, created_at: now, updated_at: now }).await
}

/// The faults of an invalid change together with those that only the stored settings show.
pub(crate) async fn faults(
    app: &App,
    id: &str,
    request: &Value,
    invalid: ValidationError,
) -> Result<ValidationError, Error> {
    let StoredMerchant { merchant, .. } = merchants::find(&mut *app.pool.get().await?, id).await?;
    let Merchant { settings, warehouses, .. } = &merchant;
    let read = object(|body| SettingsChange::read_for(body, &app.guard, settings, warehouses));
    Ok(Document::from(request).read(read).err().unwrap_or(invalid))
}

/// Changes settings, of the expected version if there is one. The audit record contains `request`.
pub(crate) async fn update(
    app: &App,
    actor: &str,
    id: &str,
    change: SettingsChange,
    request: Value,
    expected: Option<i64>,
) -> Result<MerchantView, Error> {
    let (stored, ()) = update_with(app, actor, id, "merchant.updated", |merchant, _| {
        check_version(merchant, expected)?;
        change.clone().apply(&mut merchant.settings, &merchant.warehouses)?;
        Ok(((), request.clone()))
    })
    .await?;
    MerchantView::new(app, stored).await
}

/// The condition of a request that creates or replaces a part of a merchant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition {
    /// The version of the merchant that the caller has read.
    pub(crate) expected_version: Option<i64>,
    /// Whether a part that exists is not replaced.
    pub(crate) must_be_new: bool,
}

/// Rejects a change of another version than the caller has read.
pub(crate) fn check_version(merchant: &Merchant, expected: Option<i64>) -> Result<(), Error> {
    match expected {
        Some(version) if version != merchant.version => {
            Err(Error::MerchantChanged(merchant.identifier.clone()))
        }
        _ => Ok(()),
    }
}

/// Applies `change` to a merchant. `change` returns the caller's result and the detail of the audit record; it
/// runs again if another transaction had locked the merchant for too long.
pub(crate) async fn update_with<T: Send>(
    app: &App,
    actor: &str,
    id: &str,
    action: &'static str,
    change: impl Fn(&mut Merchant, Timestamp) -> Result<(T, Value), Error> + Send + Sync,
) -> Result<(StoredMerchant, T), Error> {
    app.pool
        .transaction_of(id, async |conn| update_in(app, conn, actor, (id, action), &change).await)
        .await
}

/// Applies `change` to a merchant in the caller's transaction. A merchant that stays as it is keeps its version, and
/// nothing is recorded or published.
pub(crate) async fn update_in<T: Send>(
    app: &App,
    conn: &mut AsyncPgConnection,
    actor: &str,
    (id, action): (&str, &'static str),
    change: &(impl Fn(&mut Merchant, Timestamp) -> Result<(T, Value), Error> + Send + Sync),
) -> Result<(StoredMerchant, T), Error> {
    let mut stored = merchants::lock(conn, id).await?;
    let now = app.clock.now();
    let before = stored.merchant.clone();
    let merchant = &mut stored.merchant;
    let (result, detail) = change(merchant, now)?;
    if *merchant == before {
        return Ok((stored, result));
    }
    merchant.version = next_version(merchant.version, now);
    merchants::update(conn, merchant, now).await?;
    if merchant.settings.policy.rules != before.settings.policy.rules {
        policy_versions::insert(conn, merchant, actor, now).await?;
    }
    audit::insert(conn, record(actor, action, &merchant.identifier, detail), now).await?;
    app.outbox.append(conn, now, [MerchantChanged { merchant: merchant.clone() }]).await?;
    stored.updated_at = now;
    Ok((stored, result))
}

/// Publishes every merchant under a new version, and every revocation that has not expired.
///
/// Other services need this after they lost their replica, or after the database of auth was restored
/// from a backup.
pub(crate) async fn republish(app: &App, actor: &str) -> Result<u64, Error> {
    let now = app.clock.now();
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        merchants::increment_versions(conn, next_version(0, now)).await?;
        let mut after = String::new();
        let mut count = 0;
        loop {
            let page = merchants::page(conn, None, None, &after, REPUBLISH_BATCH_SIZE).await?;
            let Some(last) = page.last() else { break };
            after = last.merchant.identifier.to_string();
            count += u64::try_from(page.len()).unwrap_or(0);
            let events =
                page.into_iter().map(|stored| MerchantChanged { merchant: stored.merchant });
            app.outbox.append(conn, now, events).await?;
        }
        let revocations = revocations::unexpired(conn, now).await?;
        for batch in revocations.chunks(REVOCATION_BATCH_SIZE) {
            app.outbox.append(conn, now, batch.iter().cloned()).await?;
        }
        let action = "merchants.republished";
        let subject = "merchants".to_owned();
        let detail = json!({ "merchants": count });
        let record = NewAuditRecord { actor, action, subject, merchant: None, detail };
        audit::insert(conn, record, now).await?;
        Ok(count)
    })
    .await
}

/// The next version is at least the time in milliseconds, so that it exceeds every published version
/// even after the database was restored from a backup.
fn next_version(version: i64, now: Timestamp) -> i64 {
    now.timestamp_millis().max(version + 1)
}

fn record<'a>(
    actor: &'a str,
    action: &'static str,
    merchant: &'a MerchantId,
    detail: Value,
) -> NewAuditRecord<'a> {
    let subject = format!("merchant/{merchant}");
    NewAuditRecord { actor, action, subject, merchant: Some(merchant), detail }
}
