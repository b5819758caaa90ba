//! Standard Webhooks signatures: what we put on every message, and the check a merchant makes.
//!
//! The signed text is `<id>.<timestamp>.<body>`; while a secret is being rotated a message
//! carries one signature per valid secret, so a merchant may switch at any moment in between.
//! Key bytes leave this module only as signatures.

use std::fmt;

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{DateTime, TimeDelta, Utc};

pub const ID: &str = "webhook-id";
pub const TIMESTAMP: &str = "webhook-timestamp";
pub const SIGNATURE: &str = "webhook-signature";

/// How far a receiver's clock may be from the sender's.
pub const TOLERANCE: TimeDelta = TimeDelta::minutes(5);

const PREFIX: &str = "whsec_";
const VERSION: &str = "v1";
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A shared signing secret, written `whsec_<base64 of 24 to 64 bytes>`.
#[derive(Clone)]
pub struct Secret(hmac::Key);

impl Secret {
    pub fn parse(text: &str) -> Result<Self, BadSecret> {
        let encoded = text.strip_prefix(PREFIX).unwrap_or(text);
        let key = BASE64_STANDARD.decode(encoded).map_err(BadSecret::Encoding)?;
        if !KEY_BYTES.contains(&key.len()) {
            return Err(BadSecret::Length(key.len()));
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
pub enum BadSecret {
    #[error("a signing secret is not base64")]
    Encoding(#[source] base64::DecodeError),
    #[error("a signing secret has {0} bytes, not 24 to 64")]
    Length(usize),
}

/// The value of `webhook-signature`: one signature per secret, separated by blanks.
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

/// The three headers of a message as they arrived.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    pub id: &'a str,
    pub timestamp: &'a str,
    pub signature: &'a str,
}

/// Checks a captured message the way a merchant does; any one secret that fits is enough.
pub fn verify(
    secrets: &[Secret],
    signed: Signed<'_>,
    body: &[u8],
    now: DateTime<Utc>,
) -> Result<(), Unverified> {
    let at = signed
        .timestamp
        .parse()
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .ok_or_else(|| Unverified::Timestamp(signed.timestamp.to_owned()))?;
    if now - at > TOLERANCE {
        return Err(Unverified::TooOld);
    }
    if at - now > TOLERANCE {
        return Err(Unverified::FromTheFuture);
    }
    let candidates = signed
        .signature
        .split(' ')
        .filter_map(|entry| entry.split_once(','))
        .filter(|(version, _)| *version == VERSION)
        .filter_map(|(_, encoded)| BASE64_STANDARD.decode(encoded).ok());
    for candidate in candidates {
        for secret in secrets {
            let tag = secret.mac(signed.id, at.timestamp(), body);
            if aws_lc_rs::constant_time::verify_slices_are_equal(tag.as_ref(), &candidate).is_ok() {
                return Ok(());
            }
        }
    }
    Err(Unverified::NoMatch)
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    #[error("`{0}` is not a Unix time in seconds")]
    Timestamp(String),
    #[error("the timestamp is more than five minutes old")]
    TooOld,
    #[error("the timestamp is more than five minutes ahead")]
    FromTheFuture,
    #[error("no v1 signature fits any of the secrets")]
    NoMatch,
}

#[cfg(test)]
mod tests {
    use super::{BadSecret, Secret, Signed, Unverified, sign, verify};
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
        theirs: &[&str],
        timestamp: &str,
        signature: &str,
        body: &[u8],
        want: Result<(), Unverified>,
    ) {
        let signed = Signed { id: ID, timestamp, signature };
        assert_eq!(verify(&secrets(theirs), signed, body, at()), want);
    }

    #[test]
    fn a_signature_equals_the_published_example() {
        assert_eq!(
            sign(&secrets(&[OLD]), ID, at(), BODY),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        );
    }

    #[test]
    fn a_message_verifies_with_any_valid_secret_and_with_no_other() {
        let both = sign(&secrets(&[OLD, NEW]), ID, at(), BODY);
        let now = "1614265330";
        assert_eq!(both.split(' ').count(), 2);
        check(&[OLD], now, &both, BODY, Ok(()));
        check(&[NEW], now, &both, BODY, Ok(()));
        check(&[NEW, OLD], now, &both, BODY, Ok(()));
        check(&[], now, &both, BODY, Err(Unverified::NoMatch));

        let old = sign(&secrets(&[OLD]), ID, at(), BODY);
        check(&[NEW], now, &old, BODY, Err(Unverified::NoMatch));
        check(&[OLD], now, &old, b"{}", Err(Unverified::NoMatch));
        check(&[OLD], "1614265331", &old, BODY, Err(Unverified::NoMatch));
        check(&[OLD], now, &old.replace("v1,", "v2,"), BODY, Err(Unverified::NoMatch));
        check(&[OLD], now, &format!("v1a,xyz nonsense {old}"), BODY, Ok(()));
        check(&[OLD], now, "v1,", BODY, Err(Unverified::NoMatch));
        check(&[OLD], now, "", BODY, Err(Unverified::NoMatch));
    }

    #[test]
    fn a_timestamp_outside_five_minutes_is_refused() {
        let signed_at = |offset: i64| {
            let then = at() + TimeDelta::seconds(offset);
            (then.timestamp().to_string(), sign(&secrets(&[OLD]), ID, then, BODY))
        };
        for (offset, want) in [
            (0, Ok(())),
            (-300, Ok(())),
            (300, Ok(())),
            (-301, Err(Unverified::TooOld)),
            (301, Err(Unverified::FromTheFuture)),
        ] {
            let (timestamp, signature) = signed_at(offset);
            check(&[OLD], &timestamp, &signature, BODY, want);
        }
        for odd in ["", "soon", "1614265330.5", "99999999999999999999"] {
            check(&[OLD], odd, "v1,x", BODY, Err(Unverified::Timestamp(odd.to_owned())));
        }
    }

    #[test]
    fn secrets_are_base64_of_24_to_64_bytes_with_or_without_prefix() {
        assert!(Secret::parse(OLD.strip_prefix("whsec_").unwrap()).is_ok());
        assert!(matches!(Secret::parse("whsec_not base64!"), Err(BadSecret::Encoding(_))));
        assert!(matches!(Secret::parse("whsec_c2hvcnQ="), Err(BadSecret::Length(5))));
        let long = format!("whsec_{}", "QUFB".repeat(22));
        assert!(matches!(Secret::parse(&long), Err(BadSecret::Length(66))));
        assert!(matches!(Secret::parse(""), Err(BadSecret::Length(0))));
        assert_eq!(format!("{:?}", Secret::parse(OLD).unwrap()), "Secret(…)");
    }

    #[test]
    fn the_public_library_computes_the_same_signature() {
        let theirs = standardwebhooks::Webhook::new(NEW).unwrap();
        for body in ["", "{}", "{\"titel\":\"Grüße, 返品\"}"] {
            assert_eq!(
                sign(&secrets(&[NEW]), ID, at(), body.as_bytes()),
                theirs.sign(ID, at().timestamp(), body.as_bytes()).unwrap(),
            );
        }
    }
}
