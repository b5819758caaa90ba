//! The errors of requests to the OpenID provider.

use std::sync::Arc;

/// Bounds the discovery document, the keys and a token response.
pub(crate) const MAX_RESPONSE_BYTES: usize = 256 * 1024;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderError {
    #[error("the OpenID provider does not respond as it should")]
    Request(#[from] reqwest::Error),
    #[error("the response of the OpenID provider is larger than {MAX_RESPONSE_BYTES} bytes")]
    TooLarge,
    #[error("the response of the OpenID provider is not valid JSON")]
    Json(#[from] serde_json::Error),
    #[error("the discovery document of the OpenID provider is invalid: {0}")]
    Metadata(&'static str),
    #[error("the OpenID provider refused the token request: {0}")]
    Refused(String),
    /// The code is unknown, expired or was used before.
    #[error("the OpenID provider does not accept the code")]
    InvalidCode,
    #[error(transparent)]
    Shared(#[from] Arc<ProviderError>),
}
