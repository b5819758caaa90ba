//! Recovery codes, each of which replaces a TOTP code once.

use aws_lc_rs::error::Unspecified;

use crate::credentials;

const COUNT: usize = 10;

/// Generates the recovery codes of a person. Each has 80 random bits, so an unsalted SHA-256 of it is
/// safe to store.
pub(crate) fn generate() -> Result<Vec<String>, Unspecified> {
    (0..COUNT).map(|_| generate_code()).collect()
}

fn generate_code() -> Result<String, Unspecified> {
    let bytes = credentials::random_bytes::<10>()?;
    let group = |pair: &[u8]| pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Ok(bytes.chunks(2).map(group).collect::<Vec<_>>().join("-"))
}

/// The hash of a code. Case, spaces and hyphens do not matter.
pub(crate) fn hash(code: &str) -> Vec<u8> {
    let is_separator = |c: &char| c.is_whitespace() || *c == '-';
    let code: String = code.chars().filter(|c| !is_separator(c)).collect();
    credentials::hash(&code.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_can_be_written_in_several_ways() {
        let codes = generate().unwrap();
        assert_eq!((codes.len(), codes[0].len()), (10, 24));
        assert_ne!(codes[0], codes[1]);
        let written = codes[0].replace('-', " ").to_uppercase();
        assert_eq!(hash(&written), hash(&codes[0]));
        assert_ne!(hash(&codes[0]), hash(&codes[1]));
    }
}
