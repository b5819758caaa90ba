//! The clients of endpoints that require a client certificate.
//!
//! The certificate belongs to a TLS connection, so requests with different certificates cannot share a pool
//! of connections: each certificate has a client of its own.

use std::time::Duration;

use aws_lc_rs::digest;
use platform::ClientIdentity;

use super::{GuardedClient, RequestError};

/// A client that is unused for this long leaves the cache, with its connections.
const CACHE_IDLE_TIME: Duration = Duration::from_secs(10 * 60);
const MAX_CLIENTS: u64 = 1000;

/// Clients by the hash of their certificate. The private key follows from the certificate.
#[derive(Clone)]
pub(super) struct Identities(moka::sync::Cache<Vec<u8>, GuardedClient>);

impl Identities {
    pub(super) fn new() -> Self {
        let cache = moka::sync::Cache::builder()
            .max_capacity(MAX_CLIENTS)
            .time_to_idle(CACHE_IDLE_TIME)
            .build();
        Self(cache)
    }

    pub(super) fn get_or_build(
        &self,
        identity: &ClientIdentity,
        build: impl FnOnce() -> Result<GuardedClient, reqwest::Error>,
    ) -> Result<GuardedClient, RequestError> {
        let mut context = digest::Context::new(&digest::SHA256);
        for certificate in &identity.certified_key.cert {
            context.update(certificate);
        }
        let fingerprint = context.finish().as_ref().to_vec();
        let built = self.0.try_get_with(fingerprint, || build().map_err(RequestError::from));
        built.map_err(|error| RequestError::clone(&error))
    }
}
