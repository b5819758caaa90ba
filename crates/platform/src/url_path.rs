//! Paths of URLs.

/// The segments of a path, each percent-encoded and joined with slashes.
pub fn join(segments: &[&str]) -> String {
    segments.iter().map(|segment| encode(segment)).collect::<Vec<_>>().join("/")
}

/// A dot segment cannot be encoded: URL parsers remove it, and with `..` also the segment before it. In its place
/// stands a NUL, which no identifier has.
fn encode(segment: &str) -> String {
    if matches!(segment, "." | "..") {
        return "%00".to_owned();
    }
    let encoded = segment.bytes().map(|byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_encoded() {
        assert_eq!(join(&["v1", "orders", "A/B ä?"]), "v1/orders/A%2FB%20%C3%A4%3F");
        assert_eq!(join(&["v1", "orders", "..", "returnable"]), "v1/orders/%00/returnable");
        assert_eq!(join(&["v1", "orders", ".", "..."]), "v1/orders/%00/...");
        assert_eq!(join(&["1\t\r\n"]), "1%09%0D%0A");
    }
}
