//! The common parts of a request that can be repeated.

use domain::access::MerchantId;
use domain::json::Digest;
use platform::Timestamp;
use platform::idempotency::IdempotencyKey;

#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) merchant: &'a MerchantId,
    pub(crate) key: Option<IdempotencyKey<'a>>,
    /// The digest of the body.
    pub(crate) digest: Digest,
    pub(crate) at: Timestamp,
}
