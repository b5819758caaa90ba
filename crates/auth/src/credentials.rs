//! Client ids, client secrets, signing secrets and their rotation, and the tokens of sessions and
//! invitations.
//!
//! Every generated secret has 256 random bits, so an unsalted SHA-256 of it is safe to store. A signing
//! secret is needed again to sign, so it is stored encrypted instead.

use std::time::Duration;

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{SHA256, digest},
    error::Unspecified,
    rand,
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use chrono::TimeDelta;
use platform::Timestamp;

const MAX_CLIENT_ID_BYTES: usize = 255;

/// A request for a new secret.
pub(crate) struct Rotation {
    /// How long the previous secret stays valid.
    pub(crate) overlap: Duration,
    /// Whether a secret that is in use may end at once.
    pub(crate) force: bool,
}

impl Rotation {
    /// The time until which the previous secret stays valid.
    pub(crate) fn overlap_ends_at(&self, now: Timestamp) -> Timestamp {
        now + TimeDelta::from_std(self.overlap).unwrap_or(TimeDelta::zero())
    }
}

/// Whether a client can have this id. An invalid id never reaches a cache or the database.
pub(crate) fn is_valid_client_id(id: &str) -> bool {
    id.len() <= MAX_CLIENT_ID_BYTES && !id.chars().any(char::is_control)
}

pub(crate) fn random_bytes<const LENGTH: usize>() -> Result<[u8; LENGTH], Unspecified> {
    let mut bytes = [0; LENGTH];
    rand::fill(&mut bytes)?;
    Ok(bytes)
}

/// Generates the token of a session or an invitation: 256 random bits.
pub(crate) fn generate_token() -> Result<String, Unspecified> {
    Ok(URL_SAFE_NO_PAD.encode(random_bytes::<32>()?))
}

pub(crate) fn generate_client_secret() -> Result<String, Unspecified> {
    Ok(format!("bhs_{}", URL_SAFE_NO_PAD.encode(random_bytes::<32>()?)))
}

/// Generates a secret for signing messages, in the format of Standard Webhooks.
pub(crate) fn generate_signing_secret() -> Result<String, Unspecified> {
    Ok(format!("whsec_{}", STANDARD.encode(random_bytes::<32>()?)))
}

pub(crate) fn hash(secret: &str) -> Vec<u8> {
    digest(&SHA256, secret.as_bytes()).as_ref().to_vec()
}

/// The position of the hash that the secret has. All hashes are compared, in constant time.
pub(crate) fn position<'a>(
    secret: &str,
    hashes: impl IntoIterator<Item = &'a [u8]>,
) -> Option<usize> {
    let presented = hash(secret);
    hashes.into_iter().enumerate().fold(None, |found, (position, hash)| {
        let is_equal = verify_slices_are_equal(&presented, hash).is_ok();
        if is_equal { Some(position) } else { found }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_secrets_are_long_and_unique() {
        let (one, two) = (generate_client_secret().unwrap(), generate_client_secret().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.len(), "bhs_".len() + 43);
        assert!(generate_signing_secret().unwrap().starts_with("whsec_"));
    }

    #[test]
    fn only_the_hashed_secrets_match() {
        let hashes = [hash("old"), hash("new")];
        let find = |secret| position(secret, hashes.iter().map(Vec::as_slice));
        assert_eq!((find("old"), find("new")), (Some(0), Some(1)));
        assert_eq!((find("older"), find(""), position("old", [])), (None, None, None));
    }
}
