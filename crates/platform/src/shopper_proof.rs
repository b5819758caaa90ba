//! Proofs that a shopper knows an order, and the deep links and gift codes that lead to one.
//!
//! A token with the scope `shopper` shows a portal and looks up orders; all other requests need proofs.
//! A proof is sealed for one order of one merchant and expires after half an hour, so a portal that is
//! broken into cannot list orders. rma-engine issues proofs; every service with the same keys accepts them.
//!
//! See docs/decisions/shopper-proofs.md.

mod amounts;
mod requester;
#[cfg(test)]
mod tests;

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{SHA256, digest},
    hmac,
};
use chrono::TimeDelta;
use domain::{access::MerchantId, merchant::Sealed};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _},
};
use uuid::Uuid;

pub use amounts::remove_amounts;
pub use requester::{ProofError, ProvenOrders, Requester};

use crate::{
    Clock, Timestamp,
    config::List,
    sealing::{SealError, Sealer, key_bytes},
};

/// The request header with the proofs.
pub const HEADER: &str = "X-Shopper-Proof";
const LIFETIME: TimeDelta = TimeDelta::minutes(30);

/// The letters of gift codes: 5 bits each, without letters that look like digits.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const GIFT_CODE_LENGTH: usize = 12;
const GIFT_CODE_GROUP: usize = 4;

/// `[shopper]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `id:base64 of 32 bytes`, newest first.
    #[serde(deserialize_with = "valid_keys")]
    pub proof_keys: List<SecretString>,
}

/// Rejects bad keys when the settings are read, so that nothing starts with them.
fn valid_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<List<SecretString>, D::Error> {
    let keys = List::deserialize(deserializer)?;
    match Sealer::with_keys(&keys) {
        Ok(_) => Ok(keys),
        Err(_) => Err(D::Error::custom("every key must be `id:<base64 of 32 random bytes>`")),
    }
}

/// An order that a shopper knows, until a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenOrder {
    pub order_identifier: String,
    /// Whether the shopper is the giftee and not the buyer.
    pub is_gift: bool,
    pub expires_at: Timestamp,
}

/// The order of a deep link, and the id of the link's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedOrder {
    pub id: Uuid,
    #[serde(flatten)]
    pub order: ProvenOrder,
}

/// The use of a sealed text. A text of one use does not open as the other.
#[derive(Debug, Clone, Copy)]
enum Use {
    Proof,
    DeepLink,
}

/// The keys of proofs, deep links and gift codes. The first key is for new ones; all keys are accepted.
pub struct ProofKeys {
    sealer: Sealer,
    gift_codes: Vec<hmac::Key>,
    clock: Clock,
}

impl ProofKeys {
    pub fn new(settings: &Settings, clock: Clock) -> Result<Self, SealError> {
        let bytes = settings.proof_keys.iter().filter_map(key_bytes);
        let gift_codes = bytes.map(|(_, bytes)| {
            // A key of its own, because the configured one encrypts.
            let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes), b"gift codes");
            hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
        });
        let sealer = Sealer::with_keys(&settings.proof_keys)?;
        Ok(Self { sealer, gift_codes: gift_codes.collect(), clock })
    }

    /// A proof, and its expiry.
    pub fn issue(
        &self,
        merchant: &MerchantId,
        order_identifier: &str,
        is_gift: bool,
    ) -> Result<(String, Timestamp), SealError> {
        let expires_at = self.clock.now() + LIFETIME;
        let order_identifier = order_identifier.to_owned();
        let order = ProvenOrder { order_identifier, is_gift, expires_at };
        Ok((self.seal(Use::Proof, merchant, &order)?, expires_at))
    }

    /// The order of a proof.
    pub fn open(&self, merchant: &MerchantId, proof: &str) -> Result<ProvenOrder, ProofError> {
        let order: ProvenOrder =
            self.unseal(Use::Proof, merchant, proof).ok_or(ProofError::Required)?;
        if self.is_expired(&order) { Err(ProofError::Expired) } else { Ok(order) }
    }

    /// The token of a deep link.
    pub fn deep_link(
        &self,
        merchant: &MerchantId,
        link: &LinkedOrder,
    ) -> Result<String, SealError> {
        self.seal(Use::DeepLink, merchant, link)
    }

    /// The order of a deep link that has not expired.
    pub fn open_deep_link(&self, merchant: &MerchantId, token: &str) -> Option<LinkedOrder> {
        let link: LinkedOrder = self.unseal(Use::DeepLink, merchant, token)?;
        (!self.is_expired(&link.order)).then_some(link)
    }

    /// The gift code of an order, in groups of four letters.
    pub fn gift_code(&self, merchant: &MerchantId, order: &str) -> Result<String, SealError> {
        let key = self.gift_codes.first().ok_or(SealError::NoKeys)?;
        let code = letters(key, merchant, order);
        let groups: Vec<_> = code.as_bytes().chunks(GIFT_CODE_GROUP).map(as_text).collect();
        Ok(groups.join("-"))
    }

    /// Whether the code is the order's, with or without dashes and in any case.
    pub fn is_gift_code(&self, merchant: &MerchantId, order: &str, code: &str) -> bool {
        let code: String = code.chars().filter(|letter| letter.is_alphanumeric()).collect();
        let code = code.to_uppercase();
        let keys = self.gift_codes.iter();
        // Every key is compared, so that the time does not depend on the code.
        keys.filter(|key| is_same_secret(&letters(key, merchant, order), &code)).count() > 0
    }

    fn is_expired(&self, order: &ProvenOrder) -> bool {
        order.expires_at <= self.clock.now()
    }

    fn seal(
        &self,
        used_as: Use,
        merchant: &MerchantId,
        order: &impl Serialize,
    ) -> Result<String, SealError> {
        let text = serde_json::to_string(order).map_err(|_unwritable| SealError::Damaged)?;
        Ok(self.sealer.seal(&used_as.context(merchant), &text)?.0)
    }

    fn unseal<T: DeserializeOwned>(
        &self,
        used_as: Use,
        merchant: &MerchantId,
        text: &str,
    ) -> Option<T> {
        let opened = self.sealer.open(&used_as.context(merchant), &Sealed(text.to_owned())).ok()?;
        serde_json::from_str(opened.expose_secret()).ok()
    }
}

impl Use {
    fn context(self, merchant: &MerchantId) -> String {
        match self {
            Self::Proof => format!("shopper proof:{merchant}"),
            Self::DeepLink => format!("deep link:{merchant}"),
        }
    }
}

/// Compares two texts in a time that depends on neither of them.
pub fn is_same_secret(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|text| digest(&SHA256, text.as_bytes()));
    verify_slices_are_equal(one.as_ref(), other.as_ref()).is_ok()
}

/// The letters of a gift code. A merchant's identifier has no colon, so the pair is unambiguous.
fn letters(key: &hmac::Key, merchant: &MerchantId, order: &str) -> String {
    let hash = hmac::sign(key, format!("{merchant}:{order}").as_bytes());
    let letter = |byte: &u8| LETTERS.get(usize::from(byte % 32)).copied().map_or('A', char::from);
    hash.as_ref().iter().take(GIFT_CODE_LENGTH).map(letter).collect()
}

fn as_text(letters: &[u8]) -> &str {
    std::str::from_utf8(letters).unwrap_or_default()
}
