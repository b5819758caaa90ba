//! The choice of the key that verifies an ID token.

use jsonwebtoken::{
    Algorithm,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse},
};

/// The key with this id. A token without a key id needs the only key of its algorithm (OpenID Connect Core, 10.1).
pub(super) fn find<'a>(keys: &'a [Jwk], algorithm: Algorithm, id: Option<&str>) -> Option<&'a Jwk> {
    let mut suitable = keys.iter().filter(|key| {
        let is_named = id.is_none() || key.common.key_id.as_deref() == id;
        is_named && verifies(key, algorithm)
    });
    let key = suitable.next()?;
    (id.is_some() || suitable.next().is_none()).then_some(key)
}

/// Whether a key is meant for signatures with this algorithm.
fn verifies(key: &Jwk, algorithm: Algorithm) -> bool {
    let has_type = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(_), Algorithm::RS256) => true,
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES256) => {
            key.curve == EllipticCurve::P256
        }
        (AlgorithmParameters::OctetKeyPair(key), Algorithm::EdDSA) => {
            key.curve == EllipticCurve::Ed25519
        }
        _ => false,
    };
    let is_for_signatures = |use_: &PublicKeyUse| *use_ == PublicKeyUse::Signature;
    let common = &key.common;
    has_type
        && common.public_key_use.as_ref().is_none_or(is_for_signatures)
        && common.key_algorithm.is_none_or(|own| own == KeyAlgorithm::from(algorithm))
}
