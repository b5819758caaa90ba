//! ID tokens and their check (OpenID Connect Core, 3.1.3.7).

use aws_lc_rs::constant_time::verify_slices_are_equal;
use chrono::TimeDelta;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use platform::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::provider::Provider;
use crate::provider_error::ProviderError;

/// Signatures that anyone can make (`none`) and signatures with a shared secret (HS256) are missing here.
const ALGORITHMS: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];
/// The clocks of the provider and of this machine may differ by this much.
const CLOCK_SKEW: TimeDelta = TimeDelta::minutes(1);

/// The reason why a person cannot sign in. Only the log contains it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Rejection {
    #[error("the flow is {0}")]
    Flow(&'static str),
    #[error("the person is disabled")]
    Disabled,
    #[error("the e-mail address belongs to another subject of the provider")]
    OtherSubject,
    #[error("the {0} of the ID token is not acceptable")]
    IdToken(&'static str),
    #[error("the ID token is not valid")]
    Jwt(#[from] jsonwebtoken::errors::Error),
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

#[derive(Deserialize)]
struct CheckedClaims {
    aud: Value,
    azp: Option<String>,
    exp: i64,
    iat: i64,
    nonce: Option<String>,
    #[serde(flatten)]
    person: PersonClaims,
}

/// The claims about the person.
#[derive(Deserialize)]
pub(super) struct PersonClaims {
    pub(super) sub: String,
    pub(super) email: Option<String>,
    email_verified: Option<Value>,
    pub(super) name: Option<String>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl PersonClaims {
    /// Whether the provider verified the e-mail address; `None` if it does not say. Some providers write
    /// the boolean as a string.
    pub(super) fn email_verified(&self) -> Option<bool> {
        let value = self.email_verified.as_ref()?;
        Some(*value == Value::Bool(true) || value == "true")
    }

    /// The groups in this claim: a list, or one group.
    pub(super) fn groups(&self, claim: &str) -> Vec<&str> {
        match self.other.get(claim) {
            Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(group)) => vec![group],
            _ => Vec::new(),
        }
    }
}

/// Checks an ID token and returns the claims about the person. A token that was issued before the
/// sign-in could have started is too old.
pub(super) async fn verify(
    provider: &Provider,
    token: &str,
    nonce: &str,
    now: Timestamp,
    max_age: TimeDelta,
) -> Result<PersonClaims, Rejection> {
    let header = jsonwebtoken::decode_header(token)?;
    // An extension that the provider declares critical, none of which is known here (RFC 7515, 4.1.11).
    if !ALGORITHMS.contains(&header.alg) || header.crit.is_some() {
        return Err(Rejection::IdToken("header"));
    }
    let key = provider.key(header.alg, header.kid.as_deref()).await?;
    let key = DecodingKey::from_jwk(&key.ok_or(Rejection::IdToken("kid"))?)?;
    let client_id = &provider.settings.client_id;
    let mut rules = Validation::new(header.alg);
    rules.set_issuer(&[&provider.settings.issuer]);
    rules.set_audience(&[client_id]);
    rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    // Times are checked below, against the clock of this process.
    rules.validate_exp = false;
    let claims = jsonwebtoken::decode::<CheckedClaims>(token, &key, &rules)?.claims;
    check_times(&claims, now, max_age)?;
    // A token for several audiences names the client that requested it.
    let has_many = claims.aud.as_array().is_some_and(|all| all.len() > 1);
    let is_ours = claims.azp.as_ref().map_or(!has_many, |azp| azp == client_id);
    if !is_ours {
        return Err(Rejection::IdToken("azp"));
    }
    let presented = claims.nonce.as_deref().unwrap_or_default();
    verify_slices_are_equal(presented.as_bytes(), nonce.as_bytes())
        .map_err(|_differs| Rejection::IdToken("nonce"))?;
    Ok(claims.person)
}

fn check_times(
    claims: &CheckedClaims,
    now: Timestamp,
    max_age: TimeDelta,
) -> Result<(), Rejection> {
    let seconds = |time: Timestamp| time.timestamp();
    if claims.exp <= seconds(now - CLOCK_SKEW) {
        return Err(Rejection::IdToken("exp"));
    }
    let issued = seconds(now - max_age - CLOCK_SKEW)..=seconds(now + CLOCK_SKEW);
    if !issued.contains(&claims.iat) {
        return Err(Rejection::IdToken("iat"));
    }
    Ok(())
}
