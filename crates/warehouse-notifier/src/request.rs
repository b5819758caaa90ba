//! The common parts of a request that can be repeated.

use domain::access::MerchantId;
use domain::json::{Digest, Document, ValidationError};
use domain::merchant::Merchant;
use platform::http::Json;
use platform::idempotency::{IdempotencyKey, KeyHeader};
use platform::{Problem, Timestamp};

use crate::App;

#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) merchant: &'a MerchantId,
    pub(crate) key: Option<IdempotencyKey<'a>>,
    /// The digest of the body.
    pub(crate) digest: Digest,
    pub(crate) at: Timestamp,
}

impl<'a> Request<'a> {
    pub(crate) fn new(
        app: &App,
        merchant: &'a Merchant,
        key: &'a KeyHeader,
        operation: &'static str,
        digest: Digest,
    ) -> Self {
        let merchant = &merchant.identifier;
        let key = key.key_for(merchant, operation, digest);
        Self { merchant, key, digest, at: app.clock.now() }
    }
}

/// Reads a body, and its digest for the transaction.
pub(crate) async fn read_body<T: Send + 'static>(
    body: Json,
    read: impl FnOnce(&Document) -> Result<T, ValidationError> + Send + 'static,
) -> Result<(T, Digest), Problem> {
    let read = |document: &Document| (read(document), Digest::of(document.value()));
    let (read, digest) = body.read_with(read).await?;
    Ok((read?, digest))
}
