//! The probable reason of a 401 or 403 response to a sample.
//!
//! Only the response shows whether the receiver refused the signature or the credentials. A receiver that
//! gets no credentials cannot refuse them. One that refuses them must name their scheme in
//! `WWW-Authenticate` (RFC 9110). The body may name the signature. Without any of this the reason is
//! unknown.

use serde::Serialize;
use utoipa::ToSchema;

/// The part of a request that an endpoint refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusedPart {
    /// The response names the signature, or the request had no credentials.
    Signature,
    /// The response asks for credentials.
    Credentials,
    /// The response does not say which.
    Unknown,
}

const SIGNATURE_WORDS: [&str; 5] =
    ["signature", "webhook-id", "webhook-timestamp", "hmac", "whsec"];
const CREDENTIAL_WORDS: [&str; 6] =
    ["credential", "password", "api key", "api-key", "authorization", "authentication"];

/// The response to a sample, as far as it shows the reason.
pub(super) struct CheckedResponse<'a> {
    pub(super) status: Option<u16>,
    /// Whether the request had credentials.
    pub(super) has_credentials: bool,
    /// Whether the response has the header `WWW-Authenticate`.
    pub(super) asks_for_credentials: bool,
    pub(super) body: &'a str,
}

impl CheckedResponse<'_> {
    /// Returns the refused part; none for a response other than 401 and 403.
    pub(super) fn part(&self) -> Option<RefusedPart> {
        if !matches!(self.status, Some(401 | 403)) {
            return None;
        }
        let body = self.body.to_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| body.contains(word));
        Some(match (names(&SIGNATURE_WORDS), names(&CREDENTIAL_WORDS)) {
            (true, true) => RefusedPart::Unknown,
            (true, false) => RefusedPart::Signature,
            (false, true) => RefusedPart::Credentials,
            (false, false) if self.asks_for_credentials => RefusedPart::Credentials,
            (false, false) if !self.has_credentials => RefusedPart::Signature,
            (false, false) => RefusedPart::Unknown,
        })
    }
}

impl RefusedPart {
    /// Returns the remedy in a sentence.
    pub(super) fn remedy(self, has_credentials: bool) -> &'static str {
        match (self, has_credentials) {
            (Self::Signature, true) => {
                "the endpoint refused the signature: it must verify with the signing secret of this \
                 endpoint, over the body as received"
            }
            (Self::Signature, false) => {
                "the endpoint refused the signature, or needs credentials that are not set: verify \
                 with the signing secret of this endpoint, over the body as received"
            }
            (Self::Credentials, true) => {
                "the endpoint refused the credentials: set the right ones with backhaul endpoint set"
            }
            (Self::Credentials, false) => {
                "the endpoint asks for credentials and none are set: set them with backhaul endpoint \
                 set --auth"
            }
            (Self::Unknown, _) => {
                "the endpoint refused the credentials or the signature; its response does not say \
                 which: check the credentials first, then the signing secret of this endpoint"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        (status, has_credentials, asks_for_credentials): (u16, bool, bool),
        body: &str,
        expected: Option<RefusedPart>,
    ) {
        let status = Some(status);
        let response = CheckedResponse { status, has_credentials, asks_for_credentials, body };
        assert_eq!(response.part(), expected, "{body}");
    }

    #[test]
    fn the_response_shows_the_refused_part() {
        use RefusedPart::{Credentials, Signature, Unknown};
        check((401, true, false), "invalid signature", Some(Signature));
        check((403, true, false), r#"{"error": "webhook-timestamp too old"}"#, Some(Signature));
        check((401, true, true), "Signature mismatch", Some(Signature));
        check((401, true, true), "", Some(Credentials));
        check((401, true, false), "Wrong password", Some(Credentials));
        check((401, false, true), "", Some(Credentials));
        check((401, false, false), "", Some(Signature));
        check((403, true, false), "forbidden", Some(Unknown));
        check((401, true, false), "Wrong password or signature", Some(Unknown));
        check((500, true, false), "invalid signature", None);
        check((200, false, false), "signature ok", None);
    }
}
