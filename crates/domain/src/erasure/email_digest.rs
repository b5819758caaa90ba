//! The digest by which services recognise an e-mail address that is no longer stored.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

/// The SHA-256 hash of an e-mail address in lower case, as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[schema(value_type = String, pattern = "^[0-9a-f]{64}$")]
pub struct EmailDigest(String);

impl EmailDigest {
    pub fn of(email: &str) -> Self {
        let hash = Sha256::digest(email.trim().to_lowercase());
        Self(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the digest of a text.
    pub fn is_of(&self, text: &str) -> bool {
        text.contains('@') && Self::of(text) == *self
    }
}

impl From<String> for EmailDigest {
    fn from(digits: String) -> Self {
        Self(digits)
    }
}

impl fmt::Display for EmailDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
