//! Handlers: parse the request, call the use case, respond.

pub(crate) mod audit;
pub(crate) mod clients;
pub(crate) mod endpoints;
pub(crate) mod merchants;
pub(crate) mod oauth;
pub(crate) mod signing_keys;
pub(crate) mod well_known;

use std::time::Duration;

use domain::{
    access::Scope,
    json::{Object, integer},
};
use platform::identity::{Access, Caller};

const MAX_OVERLAP_SECONDS: i64 = 30 * 24 * 3600;

/// The operator, for the audit log. Other callers are rejected.
fn require_operator(caller: &Caller) -> Result<&str, Access> {
    caller.require(Scope::Operator)?;
    Ok(caller.actor())
}

fn read_overlap(body: &Object<'_>) -> Option<Option<Duration>> {
    body.reject_unknown(&["overlap_seconds"]);
    let seconds = body.optional("overlap_seconds", integer(0..=MAX_OVERLAP_SECONDS))?;
    Some(seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs))
}

#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct RotateSecretRequest {
    /// How long the previous secret stays valid. The default is the setting `secrets.overlap`.
    #[schema(minimum = 0, maximum = 2_592_000)]
    overlap_seconds: Option<i64>,
}
