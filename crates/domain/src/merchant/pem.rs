//! Readers of certificates and private keys in PEM. Only auth can tell whether they belong together.

use super::headers::{IS_REDACTED, REDACTED};
use crate::json::{Field, parsed};

/// Enough for a chain of four certificates with large RSA keys.
const MAX_PEM_BYTES: usize = 16 * 1024;

/// A certificate with its chain. It is not encrypted, so it must not contain the private key.
pub(super) fn certificate_pem(field: Field<'_>) -> Option<String> {
    parsed(1..=MAX_PEM_BYTES, |text| {
        if text.contains("PRIVATE KEY") {
            return Err("must not contain the private key");
        }
        let is_certificate = text.contains("-----BEGIN CERTIFICATE-----");
        if is_certificate {
            Ok(text.trim().to_owned())
        } else {
            Err("must be a certificate in PEM")
        }
    })(field)
}

pub(super) fn private_key_pem(field: Field<'_>) -> Option<String> {
    parsed(1..=MAX_PEM_BYTES, |text| {
        if text.trim() == REDACTED {
            return Err(IS_REDACTED);
        }
        if text.contains("ENCRYPTED") {
            return Err("must not be encrypted: remove its passphrase first");
        }
        let is_key = text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----");
        if is_key { Ok(text.trim().to_owned()) } else { Err("must be a private key in PEM") }
    })(field)
}
