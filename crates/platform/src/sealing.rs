//! Secrets and documents at rest, sealed with AES-256-GCM and a key from the configuration.
//!
//! A sealed value contains the id of its key, so keys can be rotated: the first configured key seals,
//! and every configured key opens. Sealing and opening need the same context, so a value that was
//! moved to another row does not open.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::{Engine, engine::general_purpose::STANDARD, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::merchant::Sealed;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::config::List;

/// `[sealing]` of a service that keeps or opens secrets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `id:base64 of 32 bytes`, newest first.
    #[serde(deserialize_with = "valid_keys")]
    pub keys: List<SecretString>,
}

/// Rejects bad keys when the settings are read, so that nothing starts with them.
fn valid_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<List<SecretString>, D::Error> {
    let keys = List::deserialize(deserializer)?;
    read(&keys).map_err(D::Error::custom)?;
    Ok(keys)
}

/// The reason why a value could not be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("sealing.keys is empty: set it to `id:<base64 of 32 random bytes>`")]
    NoKeys,
    #[error("sealing.keys entry {0} is not `id:<base64 of 32 bytes>`")]
    BadKey(usize),
    #[error("sealing.keys has two keys with the id {0:?}")]
    RepeatedKey(String),
    #[error("sealed with key {0:?}, which is not in sealing.keys")]
    UnknownKey(String),
    #[error("sealed value is damaged or was moved")]
    Damaged,
}

/// The keys of this process.
pub struct Sealer {
    keys: Vec<(String, RandomizedNonceKey)>,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(id, _)| id)).finish()
    }
}

impl Sealer {
    pub fn new(settings: &Settings) -> Result<Self, SealError> {
        Self::with_keys(&settings.keys)
    }

    pub(crate) fn with_keys(keys: &[SecretString]) -> Result<Self, SealError> {
        Ok(Self { keys: read(keys)? })
    }

    pub fn seal(&self, context: &str, secret: &str) -> Result<Sealed, SealError> {
        let (id, bytes) = self.encrypt(context, secret.as_bytes())?;
        Ok(Sealed(format!("{id}.{}", URL_SAFE_NO_PAD.encode(bytes))))
    }

    pub fn open(&self, context: &str, sealed: &Sealed) -> Result<SecretString, SealError> {
        let (id, text) = sealed.0.split_once('.').ok_or(SealError::Damaged)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_damaged| SealError::Damaged)?;
        let opened = self.decrypt(context, id, &bytes)?;
        let opened = String::from_utf8(opened).map_err(|_damaged| SealError::Damaged)?;
        Ok(SecretString::from(opened))
    }

    /// Seals a document that is stored as bytes.
    pub fn seal_bytes(&self, context: &str, document: &[u8]) -> Result<Vec<u8>, SealError> {
        let (id, bytes) = self.encrypt(context, document)?;
        Ok([id.as_bytes(), b".", &bytes].concat())
    }

    pub fn open_bytes(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let end = sealed.iter().position(|byte| *byte == b'.').ok_or(SealError::Damaged)?;
        let (id, rest) = sealed.split_at(end);
        let id = std::str::from_utf8(id).map_err(|_damaged| SealError::Damaged)?;
        self.decrypt(context, id, rest.get(1..).unwrap_or_default())
    }

    /// Encrypts with the first key. Returns its id, and the nonce with the encrypted bytes.
    fn encrypt(&self, context: &str, secret: &[u8]) -> Result<(&str, Vec<u8>), SealError> {
        let (id, key) = self.keys.first().ok_or(SealError::NoKeys)?;
        let mut text = secret.to_vec();
        let nonce = key
            .seal_in_place_append_tag(Aad::from(context.as_bytes()), &mut text)
            .map_err(|_damaged| SealError::Damaged)?;
        let mut bytes = nonce.as_ref().to_vec();
        bytes.append(&mut text);
        Ok((id.as_str(), bytes))
    }

    fn decrypt(&self, context: &str, id: &str, bytes: &[u8]) -> Result<Vec<u8>, SealError> {
        let (_, key) = self
            .keys
            .iter()
            .find(|(known, _)| known == id)
            .ok_or_else(|| SealError::UnknownKey(id.to_owned()))?;
        let (nonce, text) = bytes.split_first_chunk::<NONCE_LEN>().ok_or(SealError::Damaged)?;
        let mut text = text.to_vec();
        let opened = key
            .open_in_place(Nonce::from(nonce), Aad::from(context.as_bytes()), &mut text)
            .map_err(|_damaged| SealError::Damaged)?;
        let length = opened.len();
        text.truncate(length);
        Ok(text)
    }
}

fn read(keys: &[SecretString]) -> Result<Vec<(String, RandomizedNonceKey)>, SealError> {
    let parsed = keys.iter().enumerate();
    let parsed = parsed.map(|(index, key)| parse(key).ok_or(SealError::BadKey(index)));
    let keys = parsed.collect::<Result<Vec<_>, _>>()?;
    let mut ids: Vec<_> = keys.iter().map(|(id, _)| id).collect();
    ids.sort_unstable();
    if let Some([id, _]) = ids.windows(2).find(|pair| matches!(pair, [one, other] if one == other))
    {
        return Err(SealError::RepeatedKey((*id).clone()));
    }
    if keys.is_empty() { Err(SealError::NoKeys) } else { Ok(keys) }
}

/// The id and the bytes of a configured key.
pub(crate) fn key_bytes(key: &SecretString) -> Option<(&str, Vec<u8>)> {
    let (id, bytes) = key.expose_secret().split_once(':')?;
    Some((id, STANDARD.decode(bytes).ok()?))
}

fn parse(key: &SecretString) -> Option<(String, RandomizedNonceKey)> {
    let (id, bytes) = key_bytes(key)?;
    let usable = !id.is_empty() && !id.contains('.');
    let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).ok()?;
    usable.then(|| (id.to_owned(), key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(ids: &[(&str, u8)]) -> Sealer {
        let key = |(id, byte): &(&str, u8)| {
            SecretString::from(format!("{id}:{}", STANDARD.encode([*byte; 32])))
        };
        Sealer::new(&Settings { keys: List(ids.iter().map(key).collect()) }).unwrap()
    }

    #[test]
    fn what_was_sealed_opens_in_its_own_place_only() {
        let keys = sealer(&[("k1", 1)]);
        let sealed = keys.seal("endpoint:acme:rma", "hunter2").unwrap();
        assert!(!sealed.0.contains("hunter2"));
        assert_eq!(keys.open("endpoint:acme:rma", &sealed).unwrap().expose_secret(), "hunter2");
        assert!(matches!(keys.open("endpoint:other:rma", &sealed), Err(SealError::Damaged)));
        assert_ne!(keys.seal("endpoint:acme:rma", "hunter2").unwrap(), sealed);
    }

    #[test]
    fn sealed_bytes_open_in_their_own_place_only() {
        let keys = sealer(&[("k1", 1)]);
        let document = b"%PDF-1.7 . \xff\x00";
        let sealed = keys.seal_bytes("label:acme:1", document).unwrap();
        assert!(sealed.starts_with(b"k1."));
        assert!(!sealed.windows(4).any(|part| part == b"%PDF"));
        let rotated = sealer(&[("k2", 2), ("k1", 1)]);
        assert_eq!(rotated.open_bytes("label:acme:1", &sealed).unwrap(), document);
        assert!(matches!(keys.open_bytes("label:other:1", &sealed), Err(SealError::Damaged)));
        for damaged in [&b""[..], b"k1", b"k1.", b"k1.0123456789", b"\xff.0"] {
            let opened = keys.open_bytes("label:acme:1", damaged);
            assert!(matches!(opened, Err(SealError::Damaged)), "{damaged:?}");
        }
        let unknown = sealer(&[("k2", 2)]).open_bytes("label:acme:1", &sealed);
        assert!(matches!(unknown, Err(SealError::UnknownKey(id)) if id == "k1"));
        assert_eq!(keys.open_bytes("x", &keys.seal_bytes("x", b"").unwrap()).unwrap(), b"");
    }

    #[test]
    fn two_keys_with_the_same_id_are_rejected() {
        let key = |byte: u8| SecretString::from(format!("k1:{}", STANDARD.encode([byte; 32])));
        let keys = List(vec![key(1), key(2)]);
        assert!(
            matches!(Sealer::new(&Settings { keys }), Err(SealError::RepeatedKey(id)) if id == "k1")
        );
    }

    #[test]
    fn an_old_key_still_opens_after_rotation() {
        let sealed = sealer(&[("k1", 1)]).seal("x", "secret").unwrap();
        let rotated = sealer(&[("k2", 2), ("k1", 1)]);
        assert_eq!(rotated.open("x", &sealed).unwrap().expose_secret(), "secret");
        assert!(rotated.seal("x", "secret").unwrap().0.starts_with("k2."));
        assert!(
            matches!(sealer(&[("k2", 2)]).open("x", &sealed), Err(SealError::UnknownKey(id)) if id == "k1")
        );
    }

    #[test]
    fn bad_keys_are_rejected() {
        for bad in ["", "k1", "k1:", "k1:AAAA", ":AAAA", "k.1:AAAA"] {
            let keys = List(vec![SecretString::from(bad)]);
            assert!(matches!(Sealer::new(&Settings { keys }), Err(SealError::BadKey(0))), "{bad}");
        }
        assert!(matches!(Sealer::new(&Settings { keys: List(vec![]) }), Err(SealError::NoKeys)));
    }
}
