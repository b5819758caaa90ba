//! Signature verification, implemented from the Standard Webhooks specification and independent of
//! the sender's code, so that tests detect when the two disagree.

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

const TOLERANCE_SECONDS: u64 = 300;

/// The result of a signature check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignatureStatus {
    /// The sandbox has no secret to check with.
    Unchecked,
    Valid,
    /// One of the three headers is missing or malformed.
    Missing,
    /// The timestamp is too old or in the future.
    Stale,
    Invalid,
}

/// The three signature headers of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignatureHeaders<'a> {
    pub id: Option<&'a str>,
    pub timestamp: Option<&'a str>,
    pub signature: Option<&'a str>,
}

/// The signing secrets of a merchant.
#[derive(Debug, Default)]
pub struct Secrets(Vec<hmac::Key>);

impl Secrets {
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let key = |text: &str| {
            let encoded = text.strip_prefix("whsec_").unwrap_or(text);
            let key = BASE64_STANDARD.decode(encoded).map_err(|error| error.to_string())?;
            Ok(hmac::Key::new(hmac::HMAC_SHA256, &key))
        };
        texts.into_iter().map(key).collect::<Result<_, String>>().map(Self)
    }

    pub fn check(&self, headers: SignatureHeaders<'_>, body: &[u8], now: i64) -> SignatureStatus {
        if self.0.is_empty() {
            return SignatureStatus::Unchecked;
        }
        let (Some(id), Some(timestamp), Some(signatures)) =
            (headers.id, headers.timestamp, headers.signature)
        else {
            return SignatureStatus::Missing;
        };
        let Ok(at) = timestamp.parse::<i64>() else { return SignatureStatus::Missing };
        if now.abs_diff(at) > TOLERANCE_SECONDS {
            return SignatureStatus::Stale;
        }
        let mut signed = format!("{id}.{timestamp}.").into_bytes();
        signed.extend_from_slice(body);
        let is_valid = signatures
            .split(' ')
            .filter_map(|signature| signature.strip_prefix("v1,"))
            .filter_map(|encoded| BASE64_STANDARD.decode(encoded).ok())
            .any(|tag| self.0.iter().any(|key| hmac::verify(key, &signed, &tag).is_ok()));
        if is_valid { SignatureStatus::Valid } else { SignatureStatus::Invalid }
    }
}

#[cfg(test)]
mod tests {
    use super::{Secrets, SignatureHeaders, SignatureStatus};

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const NOW: i64 = 1_614_265_330;

    #[track_caller]
    fn check(secrets: &[&str], signature: &str, timestamp: &str, expected: SignatureStatus) {
        let headers = SignatureHeaders {
            id: Some("msg_p5jXN8AQM9LWM0D4loKWxJek"),
            timestamp: Some(timestamp),
            signature: Some(signature),
        };
        let secrets = Secrets::parse(secrets.iter().copied()).unwrap();
        assert_eq!(secrets.check(headers, BODY, NOW), expected);
    }

    #[test]
    fn only_an_unchanged_message_with_a_known_secret_is_valid() {
        let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let other = "whsec_q7mM0sYJm0cT3RzX8oO8Yk9w0m1iJm6C";
        check(&[SECRET], signature, "1614265330", SignatureStatus::Valid);
        check(
            &[other, SECRET],
            &format!("v1,AAAA {signature}"),
            "1614265330",
            SignatureStatus::Valid,
        );
        check(&[other], signature, "1614265330", SignatureStatus::Invalid);
        check(&[SECRET], signature, "1614265331", SignatureStatus::Invalid);
        check(&[SECRET], "v1,AAAA", "1614265330", SignatureStatus::Invalid);
        check(&[SECRET], signature, "1614265029", SignatureStatus::Stale);
        check(&[SECRET], signature, "1614265631", SignatureStatus::Stale);
        check(&[SECRET], signature, "now", SignatureStatus::Missing);
        check(&[], signature, "1614265330", SignatureStatus::Unchecked);
        let without_headers =
            Secrets::parse([SECRET]).unwrap().check(SignatureHeaders::default(), BODY, NOW);
        assert_eq!(without_headers, SignatureStatus::Missing);
    }
}
