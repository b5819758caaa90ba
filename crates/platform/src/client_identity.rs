//! The certificate and the private key with which a client identifies itself in TLS.

use std::{fmt, sync::Arc};

use chrono::DateTime;
use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};

use crate::{Timestamp, client::provider};

/// A client certificate whose private key belongs to it.
#[derive(Clone)]
pub struct ClientIdentity {
    pub certified_key: Arc<CertifiedKey>,
    /// The end of the certificate, not of those that signed it.
    pub expires_at: Timestamp,
}

/// The reason why a certificate and a private key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    #[error("the certificate cannot be read")]
    Certificate,
    #[error("the private key cannot be read")]
    PrivateKey,
    #[error("the private key does not belong to the certificate")]
    Mismatch,
}

impl ClientIdentity {
    /// Parses a certificate with its chain and the private key, both in PEM.
    pub fn parse(certificate: &str, private_key: &str) -> Result<Self, IdentityError> {
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_not_pem| IdentityError::Certificate)?;
        let expires_at =
            chain.first().and_then(|leaf| expiry(leaf)).ok_or(IdentityError::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(private_key.as_bytes())
            .map_err(|_not_pem| IdentityError::PrivateKey)?;
        let key = provider().key_provider.load_private_key(key);
        let certified_key =
            CertifiedKey::new(chain, key.map_err(|_error| IdentityError::PrivateKey)?);
        certified_key.keys_match().map_err(|_other_key| IdentityError::Mismatch)?;
        Ok(Self { certified_key: Arc::new(certified_key), expires_at })
    }
}

fn expiry(certificate: &[u8]) -> Option<Timestamp> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    DateTime::from_timestamp(certificate.validity().not_after.timestamp(), 0)
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_private_key_must_belong_to_the_certificate() {
        let names = || ["client.example".to_owned()];
        let own = rcgen::generate_simple_self_signed(names()).unwrap();
        let other = rcgen::generate_simple_self_signed(names()).unwrap();
        let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
        let identity = ClientIdentity::parse(&certificate, &key).unwrap();
        assert!(identity.expires_at > DateTime::UNIX_EPOCH);
        assert!(!format!("{identity:?}").contains("PRIVATE"), "{identity:?}");
        let other_key = other.signing_key.serialize_pem();
        for (certificate, key, expected) in [
            (certificate.as_str(), other_key.as_str(), IdentityError::Mismatch),
            (&certificate, "-----BEGIN PRIVATE KEY-----", IdentityError::PrivateKey),
            (&certificate, &certificate, IdentityError::PrivateKey),
            (&key, &key, IdentityError::Certificate),
            ("", &key, IdentityError::Certificate),
        ] {
            let error = ClientIdentity::parse(certificate, key).unwrap_err();
            assert_eq!(error, expected, "{certificate}");
        }
    }
}
