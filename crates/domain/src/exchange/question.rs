//! The question for the variants of a product: what may be asked, and at which address.
//!
//! The invariant: an identifier that was accepted becomes exactly one segment of the path, or a
//! part of one, whatever characters it is made of.

use std::fmt;

use serde::Serialize;
use url::Url;

/// What stands for the identifier in a merchant's address, as a parsed URL spells it.
const PLACE: &str = "%7Bvariant_identifier%7D";
/// As long as any identifier of an order.
const LONGEST: usize = 255;

/// What a merchant calls a product with all its variants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct VariantIdentifier(String);

/// Not something a merchant could be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVariantIdentifier {
    #[error("a variant identifier has 1 to {LONGEST} characters")]
    Length,
    #[error("a variant identifier holds no control characters")]
    Control,
    /// Every URL library takes these away, encoded or not.
    #[error("a variant identifier is not `.` or `..`")]
    Dots,
}

/// The merchant's address does not say where the identifier goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address has no {{variant_identifier}} in its path")]
pub struct MissingPlaceholder;

/// Whether an identifier has a place in an address, or in a path below one.
pub(crate) fn has_placeholder(address: &str) -> bool {
    let below = |path| Url::parse("http://merchant").and_then(|base| base.join(path));
    below(address).is_ok_and(|url| url.path().contains(PLACE))
}

impl VariantIdentifier {
    pub fn parse(text: &str) -> Result<Self, InvalidVariantIdentifier> {
        if text.is_empty() || text.chars().count() > LONGEST {
            return Err(InvalidVariantIdentifier::Length);
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidVariantIdentifier::Control);
        }
        if matches!(text, "." | "..") {
            return Err(InvalidVariantIdentifier::Dots);
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The merchant's address with this identifier in its place.
    pub fn expand_url(&self, address: &Url) -> Result<Url, MissingPlaceholder> {
        let path = address.path();
        if !path.contains(PLACE) {
            return Err(MissingPlaceholder);
        }
        let mut url = address.clone();
        url.set_path(&path.replace(PLACE, &self.segment()));
        Ok(url)
    }

    /// Everything but letters, digits and three harmless marks is escaped.
    fn segment(&self) -> String {
        let mut segment = String::with_capacity(self.0.len());
        for byte in self.0.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
                segment.push(char::from(byte));
            } else {
                segment.push_str(&format!("%{byte:02X}"));
            }
        }
        segment
    }
}

impl fmt::Display for VariantIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
