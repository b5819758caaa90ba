//! Handlers: parse the request, call the use case, respond.

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod clients;
pub(crate) mod endpoints;
pub(crate) mod invitations;
pub(crate) mod merchants;
pub(crate) mod oauth;
pub(crate) mod oidc;
pub(crate) mod people;
pub(crate) mod policy_versions;
pub(crate) mod sessions;
pub(crate) mod signing_keys;
pub(crate) mod warehouses;
pub(crate) mod well_known;

use std::time::Duration;

use actix_web::{HttpRequest, http::header};
use domain::{
    access::{MerchantId, Scope},
    json::{Digest, Document, Object, integer, object},
};
use platform::{
    Problem,
    http::Json,
    idempotency::{IdempotencyKey, KeyHeader},
    identity::{Access, Caller},
};
use serde_json::json;

use crate::{credentials::Rotation, error::Error, merchants::Condition};

const MAX_OVERLAP_SECONDS: i64 = 30 * 24 * 3600;

/// The operator, for the audit log. Other callers are rejected.
fn require_operator(caller: &Caller) -> Result<&str, Access> {
    caller.require(Scope::Operator)?;
    Ok(caller.actor())
}

/// The operator, or the person or client that manages its own merchant, for the audit log. Other callers
/// are rejected. [`check_merchant`] limits the request to that merchant.
fn require_manage(caller: &Caller) -> Result<&str, Access> {
    caller.require(Scope::Manage)?;
    // Only an operator may change the merchant that `X-Service-Id` names.
    if caller.claims.merchant.is_none() && !caller.is_operator() {
        return Err(Access::Scope(Scope::Operator));
    }
    Ok(caller.actor())
}

/// Rejects a caller that can neither read nor manage.
fn require_read(caller: &Caller) -> Result<(), Access> {
    caller.require_any(&[Scope::Read, Scope::Manage])
}

/// Limits a request to the merchant of the caller. Another merchant gets the same response as a merchant
/// that does not exist.
fn check_merchant(caller: &Caller, merchant: &str) -> Result<(), Error> {
    match caller.merchant_scope() {
        Some(own) if own.as_str() != merchant => Err(Error::MerchantNotFound(merchant.to_owned())),
        _ => Ok(()),
    }
}

/// The merchant whose entries a list shows: the one in the query or else that of the caller. `None` means
/// all merchants.
fn listed_merchant<'a>(
    caller: &'a Caller,
    query: Option<&'a str>,
) -> Result<Option<&'a str>, Error> {
    if let Some(merchant) = query {
        check_merchant(caller, merchant)?;
    }
    Ok(query.or(caller.merchant_scope().map(MerchantId::as_str)))
}

/// The version of the merchant in `If-Match`. Without the header, a change overwrites any version. A text
/// that is no version matches none.
fn expected_version(request: &HttpRequest) -> Option<i64> {
    let value = request.headers().get(header::IF_MATCH)?.to_str().unwrap_or_default().trim();
    (value != "*").then(|| value.trim_matches('"').parse().unwrap_or(0))
}

/// The version of the merchant in `If-Match`, and whether `If-None-Match: *` forbids to replace something.
fn condition(request: &HttpRequest) -> Condition {
    let none_match = request.headers().get(header::IF_NONE_MATCH);
    let must_be_new = none_match.is_some_and(|value| value.as_bytes().trim_ascii() == b"*");
    Condition { expected_version: expected_version(request), must_be_new }
}

/// Reads a body, and its digest for the idempotency key.
async fn read_with_digest<T: Send + 'static>(
    body: Json,
    read: impl FnMut(&Object<'_>) -> Option<T> + Send + 'static,
) -> Result<(Digest, T), Problem> {
    let read = |document: &Document| (Digest::of(document.value()), document.read(object(read)));
    let (digest, read) = body.read_with(read).await?;
    Ok((digest, read?))
}

/// The idempotency key of a request for a new secret, if it has one. The caller is part of the request, so that
/// nobody else gets the secret with the key.
fn idempotency_key<'a>(
    header: &'a KeyHeader,
    caller: &'a Caller,
    operation: &'static str,
    path: &str,
    body: Digest,
) -> Option<IdempotencyKey<'a>> {
    let request = Digest::of_value(&json!([caller.actor(), path, body.as_bytes()]));
    header.key_for(caller.merchant_scope(), operation, request)
}

/// Reads the rotation of a secret. `overlap` is the default overlap.
pub(crate) fn read_rotation(body: &Object<'_>, overlap: Duration) -> Option<Rotation> {
    body.reject_unknown(&["overlap_seconds", "force"]);
    let seconds = body.optional("overlap_seconds", integer(0..=MAX_OVERLAP_SECONDS));
    let force = body.flag("force");
    let requested = seconds?.and_then(|seconds| u64::try_from(seconds).ok());
    Some(Rotation { overlap: requested.map_or(overlap, Duration::from_secs), force: force? })
}

#[derive(utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct RotateSecretRequest {
    /// How long the previous secret stays valid. The default is the setting `secrets.overlap`.
    #[schema(minimum = 0, maximum = 2_592_000)]
    overlap_seconds: Option<i64>,
    /// End a secret at once even if it is in use.
    #[schema(nullable = false)]
    force: Option<bool>,
}
