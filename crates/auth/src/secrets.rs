//! Secrets we make: 256 random bits each, shown once.
//!
//! Such a secret needs no slow hash: there is nothing to guess. A client's secret is kept as its
//! SHA-256; a signing secret must be read again and is sealed instead.

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

const BITS: usize = 256;

fn random() -> Result<[u8; BITS / 8], Unspecified> {
    let mut bytes = [0; BITS / 8];
    rand::fill(&mut bytes)?;
    Ok(bytes)
}

/// What a client proves itself with.
pub(crate) fn client_secret() -> Result<String, Unspecified> {
    Ok(format!("bhs_{}", URL_SAFE_NO_PAD.encode(random()?)))
}

/// What messages to an endpoint are signed with, in the form of Standard Webhooks.
pub(crate) fn signing_secret() -> Result<String, Unspecified> {
    Ok(format!("whsec_{}", STANDARD.encode(random()?)))
}

pub(crate) fn hash(secret: &str) -> Vec<u8> {
    digest(&SHA256, secret.as_bytes()).as_ref().to_vec()
}

/// Compares in a time that does not depend on the contents.
pub(crate) fn matches(secret: &str, hashes: &[Vec<u8>]) -> bool {
    let presented = hash(secret);
    hashes
        .iter()
        .fold(false, |found, hash| verify_slices_are_equal(&presented, hash).is_ok() | found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_and_never_the_same() {
        let (one, two) = (client_secret().unwrap(), client_secret().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.len(), "bhs_".len() + 43);
        assert!(signing_secret().unwrap().starts_with("whsec_"));
    }

    #[test]
    fn any_valid_secret_matches_and_no_other() {
        let hashes = [hash("old"), hash("new")];
        assert!(matches("old", &hashes) && matches("new", &hashes));
        assert!(!matches("older", &hashes) && !matches("", &hashes) && !matches("old", &[]));
    }
}
