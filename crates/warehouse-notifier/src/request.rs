//! The common parts of a request that can be repeated.

use domain::access::MerchantId;
use domain::json::{Digest, Document};
use domain::merchant::Merchant;
use platform::Timestamp;
use platform::idempotency::{IdempotencyKey, KeyHeader};

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
    /// Takes and drops the document, because it may be large and the transaction needs only its digest.
    pub(crate) fn new(
        app: &App,
        merchant: &'a Merchant,
        key: &'a KeyHeader,
        operation: &'static str,
        document: Document,
    ) -> Self {
        let merchant = &merchant.identifier;
        let digest = Digest::of(document.value());
        drop(document);
        let key = key.key_for(merchant, operation, digest);
        Self { merchant, key, digest, at: app.clock.now() }
    }
}
