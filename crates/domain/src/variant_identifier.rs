//! The identifier of a product's variants, and its place in the merchant's URL.
//!
//! A valid identifier always becomes one path segment, or a part of one, whatever characters it
//! contains.

use std::fmt;

use serde::Serialize;
use url::Url;

/// The placeholder in a merchant's URL, percent-encoded as in a parsed URL.
const PLACEHOLDER: &str = "%7Bvariant_identifier%7D";
/// The same limit as for the identifiers of an order.
const MAX_CHARS: usize = 255;

/// A merchant's identifier of a product with all its variants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct VariantIdentifier(String);

/// Why a text is not a variant identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVariantIdentifier {
    #[error("a variant identifier has 1 to {MAX_CHARS} characters")]
    Length,
    #[error("a variant identifier must not contain control characters")]
    Control,
    /// URL libraries remove these segments, even if they are percent-encoded.
    #[error("a variant identifier must not be `.` or `..`")]
    Dots,
}

/// The URL of a merchant's endpoint has no placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the URL has no {{variant_identifier}} in its path")]
pub struct MissingPlaceholder;

/// Whether a URL, or a path relative to one, contains the placeholder.
pub(crate) fn has_placeholder(url: &str) -> bool {
    let absolute = Url::parse("http://merchant").and_then(|base| base.join(url));
    absolute.is_ok_and(|url| url.path().contains(PLACEHOLDER))
}

impl VariantIdentifier {
    pub fn parse(text: &str) -> Result<Self, InvalidVariantIdentifier> {
        if text.is_empty() || text.chars().count() > MAX_CHARS {
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

    /// Replaces the placeholder in a merchant's URL with this identifier.
    pub fn expand_url(&self, template: &Url) -> Result<Url, MissingPlaceholder> {
        let path = template.path();
        if !path.contains(PLACEHOLDER) {
            return Err(MissingPlaceholder);
        }
        let mut url = template.clone();
        url.set_path(&path.replace(PLACEHOLDER, &self.percent_encoded()));
        Ok(url)
    }

    /// Encodes everything but ASCII letters, digits and `-_.`.
    fn percent_encoded(&self) -> String {
        let mut encoded = String::with_capacity(self.0.len());
        for byte in self.0.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
                encoded.push(char::from(byte));
            } else {
                encoded.push_str(&format!("%{byte:02X}"));
            }
        }
        encoded
    }
}

impl fmt::Display for VariantIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
