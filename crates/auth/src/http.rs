//! Handlers: parse, call, respond.

pub(crate) mod audit;
pub(crate) mod clients;
pub(crate) mod endpoints;
pub(crate) mod keys;
pub(crate) mod merchants;
pub(crate) mod oauth;
pub(crate) mod well_known;

use std::time::Duration;

use domain::{
    access::Scope,
    json::{Object, integer},
};
use platform::identity::{Access, Caller};

const LONGEST_OVERLAP_SECONDS: i64 = 30 * 24 * 3600;

/// The operator behind a request, by name; everyone else is refused.
fn operator(caller: &Caller) -> Result<&str, Access> {
    caller.require(Scope::Operator)?;
    Ok(&caller.claims.client_id)
}

/// How long an old secret lives on, when the request says so.
fn read_overlap(document: &Object<'_>) -> Option<Option<Duration>> {
    document.reject_unknown(&["overlap_seconds"]);
    let seconds = document.optional("overlap_seconds", integer(0..=LONGEST_OVERLAP_SECONDS))?;
    Some(seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs))
}

/// Said when a secret is rotated.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct Overlap {
    /// How long the old secret works beside the new one; the service's setting unless said.
    #[schema(minimum = 0, maximum = 2_592_000)]
    overlap_seconds: Option<i64>,
}
