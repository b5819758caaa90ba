//! The probable reason why a receiver refused a sample.
//!
//! Only the response shows whether the receiver refused the signature or the credentials. A receiver that
//! gets no credentials cannot refuse them. One that refuses them must name their scheme in
//! `WWW-Authenticate` (RFC 9110). The body may name the signature. Without any of this the reason of a 401
//! or 403 response is unknown. Some receivers respond to a wrong signature with another 4xx status, such as
//! 400.

use api::delivery::RefusedPart;

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
    /// Whether the status says that the receiver refused the sender.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.status, Some(401 | 403))
    }

    /// Returns the refused part of a 401 or 403 response, or of another 4xx response that names the
    /// signature.
    pub(super) fn part(&self) -> Option<RefusedPart> {
        let is_client_error = matches!(self.status, Some(400..=499));
        let body = self.body.to_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| body.contains(word));
        Some(match (names(&SIGNATURE_WORDS), names(&CREDENTIAL_WORDS)) {
            (true, false) if is_client_error => RefusedPart::Signature,
            _ if !self.is_refusal() => return None,
            (true, _) => RefusedPart::Unknown,
            (false, true) => RefusedPart::Credentials,
            (false, false) if self.asks_for_credentials => RefusedPart::Credentials,
            (false, false) if !self.has_credentials => RefusedPart::Signature,
            (false, false) => RefusedPart::Unknown,
        })
    }
}

/// Returns the reason of the refusal, to follow the status.
pub(super) fn reason(part: RefusedPart, has_credentials: bool) -> &'static str {
    match (part, has_credentials) {
        (RefusedPart::Signature, _) => "the signature was refused",
        (RefusedPart::Credentials, true) => "the credentials were refused",
        (RefusedPart::Credentials, false) => "credentials are required and none are set",
        (RefusedPart::Unknown, _) => "the credentials or the signature were refused",
    }
}

/// Returns the remedy in a sentence.
pub(super) fn remedy(part: RefusedPart, has_credentials: bool) -> &'static str {
    match (part, has_credentials) {
        (RefusedPart::Signature, true) => {
            "the endpoint refused the signature: it must verify with the signing secret of this \
             endpoint, over the body as received"
        }
        (RefusedPart::Signature, false) => {
            "the endpoint refused the signature: it must verify with the signing secret of this \
             endpoint, over the body as received; no credentials are set for it"
        }
        (RefusedPart::Credentials, true) => {
            "the endpoint refused the credentials: set the right ones with backhaul endpoint set"
        }
        (RefusedPart::Credentials, false) => {
            "the endpoint asks for credentials and none are set: set them with backhaul endpoint \
             set --auth"
        }
        (RefusedPart::Unknown, _) => {
            "the endpoint refused the credentials or the signature; its response does not say \
             which: check the credentials first, then the signing secret of this endpoint"
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
        check((400, true, false), "the signature is invalid or too old", Some(Signature));
        check((422, false, true), r#"{"error": "webhook-timestamp too old"}"#, Some(Signature));
        check((400, false, false), "the field items is missing", None);
        check((400, true, false), "Wrong password or signature", None);
        check((404, false, true), "", None);
        check((500, true, false), "invalid signature", None);
        check((200, false, false), "signature ok", None);
    }
}
