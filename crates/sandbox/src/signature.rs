//! The check a merchant makes on every message, written from the Standard Webhooks text and
//! not from the sender's code: if the two disagree, one of them is wrong and the tests say so.

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

const TOLERANCE_SECONDS: u64 = 300;

/// What a look at the signature came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The sandbox knows no secret, so nothing was checked.
    Unchecked,
    Valid,
    /// At least one of the three headers is missing or cannot be read.
    Missing,
    /// Signed too long ago, or in the future.
    OffTime,
    Wrong,
}

/// The three headers as they arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claim<'a> {
    pub id: Option<&'a str>,
    pub timestamp: Option<&'a str>,
    pub signature: Option<&'a str>,
}

/// The secrets a merchant was given.
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

    pub fn check(&self, claim: Claim<'_>, body: &[u8], now: i64) -> Verdict {
        if self.0.is_empty() {
            return Verdict::Unchecked;
        }
        let (Some(id), Some(timestamp), Some(signatures)) =
            (claim.id, claim.timestamp, claim.signature)
        else {
            return Verdict::Missing;
        };
        let Ok(at) = timestamp.parse::<i64>() else { return Verdict::Missing };
        if now.abs_diff(at) > TOLERANCE_SECONDS {
            return Verdict::OffTime;
        }
        let mut text = format!("{id}.{timestamp}.").into_bytes();
        text.extend_from_slice(body);
        let fits = signatures
            .split(' ')
            .filter_map(|signature| signature.strip_prefix("v1,"))
            .filter_map(|encoded| BASE64_STANDARD.decode(encoded).ok())
            .any(|tag| self.0.iter().any(|key| hmac::verify(key, &text, &tag).is_ok()));
        if fits { Verdict::Valid } else { Verdict::Wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Secrets, Verdict};

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const NOW: i64 = 1_614_265_330;

    #[track_caller]
    fn check(secrets: &[&str], signature: &str, timestamp: &str, want: Verdict) {
        let claim = Claim {
            id: Some("msg_p5jXN8AQM9LWM0D4loKWxJek"),
            timestamp: Some(timestamp),
            signature: Some(signature),
        };
        let secrets = Secrets::parse(secrets.iter().copied()).unwrap();
        assert_eq!(secrets.check(claim, BODY, NOW), want);
    }

    #[test]
    fn the_published_example_is_valid_and_its_neighbours_are_not() {
        let good = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let other = "whsec_q7mM0sYJm0cT3RzX8oO8Yk9w0m1iJm6C";
        check(&[SECRET], good, "1614265330", Verdict::Valid);
        check(&[other, SECRET], &format!("v1,AAAA {good}"), "1614265330", Verdict::Valid);
        check(&[other], good, "1614265330", Verdict::Wrong);
        check(&[SECRET], good, "1614265331", Verdict::Wrong);
        check(&[SECRET], "v1,AAAA", "1614265330", Verdict::Wrong);
        check(&[SECRET], good, "1614265029", Verdict::OffTime);
        check(&[SECRET], good, "1614265631", Verdict::OffTime);
        check(&[SECRET], good, "now", Verdict::Missing);
        check(&[], good, "1614265330", Verdict::Unchecked);
        let nothing = Secrets::parse([SECRET]).unwrap().check(Claim::default(), BODY, NOW);
        assert_eq!(nothing, Verdict::Missing);
    }
}
