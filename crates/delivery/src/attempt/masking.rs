//! Masks our secrets in texts of a merchant's server, which may quote the request.

use std::borrow::Cow;
use std::cmp::Reverse;

use reqwest::header::HeaderValue;

use crate::endpoint::Endpoint;

pub(super) const MASK: &str = "********";

/// The secrets that a request contains.
pub(super) struct SentSecrets<'a>(Vec<&'a str>);

impl<'a> SentSecrets<'a> {
    pub(super) fn new(endpoint: &'a Endpoint, authorization: Option<&'a HeaderValue>) -> Self {
        let token = authorization.and_then(|value| value.to_str().ok());
        let token = token.map(|value| value.trim_start_matches("Bearer "));
        let secrets = endpoint.sent_secrets().chain(token).filter(|secret| !secret.is_empty());
        let mut secrets: Vec<_> = secrets.collect();
        // The longest first, so that no part of a longer one stays.
        secrets.sort_by_key(|secret| Reverse(secret.len()));
        Self(secrets)
    }

    pub(super) fn mask<'t>(&self, mut text: Cow<'t, str>) -> Cow<'t, str> {
        for secret in &self.0 {
            // Some JSON libraries escape slashes.
            for written in [*secret, &secret.replace('/', "\\/")] {
                if text.contains(written) {
                    text = text.replace(written, MASK).into();
                }
            }
        }
        text
    }
}
