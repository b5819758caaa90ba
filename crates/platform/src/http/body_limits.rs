//! How long request bodies may be and may take.

use std::time::Duration;

/// The largest body of an operation that needs no token, such as a request for a token. The largest one completes a
/// sign-in with an OpenID provider.
pub(super) const SMALL_BODY_BYTES: usize = 32 * 1024;

/// The limits of a process. The HTTP settings set them.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    pub max_bytes: usize,
    /// For a request without a token.
    pub max_public_bytes: usize,
    pub timeout: Duration,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self { max_bytes: 1 << 20, max_public_bytes: 1 << 20, timeout: Duration::from_secs(15) }
    }
}
