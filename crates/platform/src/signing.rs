//! Standard Webhooks signatures: signing messages, and verifying them as a merchant does.
//!
//! The signed text is `<id>.<timestamp>.<body>`. During a rotation a message has one signature for
//! each valid secret. The `standardwebhooks` crate is used in tests only: it copies the body to sign
//! it, takes keys of any length, and verifies against the current time only.

use std::fmt;

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{DateTime, TimeDelta, Utc};

pub const ID_HEADER: &str = "webhook-id";
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
pub const SIGNATURE_HEADER: &str = "webhook-signature";

/// Maximum difference between the timestamp and the receiver's clock.
pub const TOLERANCE: TimeDelta = TimeDelta::minutes(5);

const PREFIX: &str = "whsec_";
const VERSION: &str = "v1";
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A signing secret in the form `whsec_<base64 of 24 to 64 bytes>`. It can be neither read nor printed.
#[derive(Clone)]
pub struct Secret(hmac::Key);

impl Secret {
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(PREFIX).unwrap_or(text);
        let key = BASE64_STANDARD.decode(encoded).map_err(SecretError::Encoding)?;
        if !KEY_BYTES.contains(&key.len()) {
            return Err(SecretError::Length(key.len()));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    fn mac(&self, id: &str, timestamp: i64, body: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(id.as_bytes());
        context.update(format!(".{timestamp}.").as_bytes());
        context.update(body);
        context.sign()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("the signing secret is not valid base64")]
    Encoding(#[source] base64::DecodeError),
    #[error("the signing secret has {0} bytes, not 24 to 64")]
    Length(usize),
}

/// Returns the value of `webhook-signature`: one signature for each secret, separated by spaces.
pub fn sign(secrets: &[Secret], id: &str, at: DateTime<Utc>, body: &[u8]) -> String {
    let timestamp = at.timestamp();
    let mut value = String::with_capacity(secrets.len() * 48);
    for secret in secrets {
        if !value.is_empty() {
            value.push(' ');
        }
        value.push_str(VERSION);
        value.push(',');
        BASE64_STANDARD.encode_string(secret.mac(id, timestamp, body), &mut value);
    }
    value
}

/// Headers of a received message.
#[derive(Clone, Copy, Debug)]
pub struct SignedHeaders<'a> {
    pub id: &'a str,
    pub timestamp: &'a str,
    pub signature: &'a str,
}

/// Verifies a received message. One matching secret is enough.
pub fn verify(
    secrets: &[Secret],
    headers: SignedHeaders<'_>,
    body: &[u8],
    now: DateTime<Utc>,
) -> Result<(), VerifyError> {
    let at = headers
        .timestamp
        .parse()
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .ok_or_else(|| VerifyError::InvalidTimestamp(headers.timestamp.to_owned()))?;
    if now - at > TOLERANCE {
        return Err(VerifyError::TooOld);
    }
    if at - now > TOLERANCE {
        return Err(VerifyError::TooNew);
    }
    let candidates = headers
        .signature
        .split(' ')
        .filter_map(|entry| entry.split_once(','))
        .filter(|(version, _)| *version == VERSION)
        .filter_map(|(_, encoded)| BASE64_STANDARD.decode(encoded).ok());
    for candidate in candidates {
        for secret in secrets {
            let tag = secret.mac(headers.id, at.timestamp(), body);
            if aws_lc_rs::constant_time::verify_slices_are_equal(tag.as_ref(), &candidate).is_ok() {
                return Ok(());
            }
        }
    }
    Err(VerifyError::NoMatchingSignature)
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    #[error("`{0}` is not a Unix time in seconds")]
    InvalidTimestamp(String),
    #[error("the timestamp is more than five minutes old")]
    TooOld,
    #[error("the timestamp is more than five minutes ahead")]
    TooNew,
    #[error("no v1 signature matches a secret")]
    NoMatchingSignature,
}

#[cfg(test)]
mod tests {
    use super::{Secret, SecretError, SignedHeaders, VerifyError, sign, verify};
    use chrono::{DateTime, TimeDelta, Utc};

    const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const NEW: &str = "whsec_q7mM0sYJm0cT3RzX8oO8Yk9w0m1iJm6C";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;

    fn at() -> DateTime<Utc> {
        DateTime::from_timestamp(1_614_265_330, 0).unwrap()
    }

    fn secrets(texts: &[&str]) -> Vec<Secret> {
        texts.iter().map(|text| Secret::parse(text).unwrap()).collect()
    }

    #[track_caller]
    fn check(
        receiver: &[&str],
        timestamp: &str,
        signature: &str,
        body: &[u8],
        expected: Result<(), VerifyError>,
    ) {
        let headers = SignedHeaders { id: ID, timestamp, signature };
        assert_eq!(verify(&secrets(receiver), headers, body, at()), expected);
    }

    #[test]
    fn a_signature_matches_the_published_example() {
        assert_eq!(
            sign(&secrets(&[OLD]), ID, at(), BODY),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        );
    }

    #[test]
    fn a_message_verifies_only_with_a_secret_that_signed_it() {
        let both = sign(&secrets(&[OLD, NEW]), ID, at(), BODY);
        let now = "1614265330";
        assert_eq!(both.split(' ').count(), 2);
        check(&[OLD], now, &both, BODY, Ok(()));
        check(&[NEW], now, &both, BODY, Ok(()));
        check(&[NEW, OLD], now, &both, BODY, Ok(()));
        check(&[], now, &both, BODY, Err(VerifyError::NoMatchingSignature));

        let old = sign(&secrets(&[OLD]), ID, at(), BODY);
        check(&[NEW], now, &old, BODY, Err(VerifyError::NoMatchingSignature));
        check(&[OLD], now, &old, b"{}", Err(VerifyError::NoMatchingSignature));
        check(&[OLD], "1614265331", &old, BODY, Err(VerifyError::NoMatchingSignature));
        check(&[OLD], now, &old.replace("v1,", "v2,"), BODY, Err(VerifyError::NoMatchingSignature));
        check(&[OLD], now, &format!("v1a,xyz nonsense {old}"), BODY, Ok(()));
        check(&[OLD], now, "v1,", BODY, Err(VerifyError::NoMatchingSignature));
        check(&[OLD], now, "", BODY, Err(VerifyError::NoMatchingSignature));
    }

    #[test]
    fn a_timestamp_outside_five_minutes_is_rejected() {
        let signed_at = |offset: i64| {
            let then = at() + TimeDelta::seconds(offset);
            (then.timestamp().to_string(), sign(&secrets(&[OLD]), ID, then, BODY))
        };
        for (offset, expected) in [
            (0, Ok(())),
            (-300, Ok(())),
            (300, Ok(())),
            (-301, Err(VerifyError::TooOld)),
            (301, Err(VerifyError::TooNew)),
        ] {
            let (timestamp, signature) = signed_at(offset);
            check(&[OLD], &timestamp, &signature, BODY, expected);
        }
        for invalid in ["", "soon", "1614265330.5", "99999999999999999999"] {
            check(
                &[OLD],
                invalid,
                "v1,x",
                BODY,
                Err(VerifyError::InvalidTimestamp(invalid.to_owned())),
            );
        }
    }

    #[test]
    fn secrets_are_base64_of_24_to_64_bytes_with_or_without_prefix() {
        assert!(Secret::parse(OLD.strip_prefix("whsec_").unwrap()).is_ok());
        assert!(matches!(Secret::parse("whsec_not base64!"), Err(SecretError::Encoding(_))));
        assert!(matches!(Secret::parse("whsec_c2hvcnQ="), Err(SecretError::Length(5))));
        let long = format!("whsec_{}", "QUFB".repeat(22));
        assert!(matches!(Secret::parse(&long), Err(SecretError::Length(66))));
        assert!(matches!(Secret::parse(""), Err(SecretError::Length(0))));
        assert_eq!(format!("{:?}", Secret::parse(OLD).unwrap()), "Secret(…)");
    }

    #[test]
    fn the_standardwebhooks_crate_computes_the_same_signature() {
        let webhook = standardwebhooks::Webhook::new(NEW).unwrap();
        for body in ["", "{}", "{\"titel\":\"Grüße, 返品\"}"] {
            assert_eq!(
                sign(&secrets(&[NEW]), ID, at(), body.as_bytes()),
                webhook.sign(ID, at().timestamp(), body.as_bytes()).unwrap(),
            );
        }
    }
}
