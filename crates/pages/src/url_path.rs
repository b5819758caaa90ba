//! Paths of URLs.

/// The segments of a path, each percent-encoded and joined with slashes.
#[macro_export]
macro_rules! path {
    ($($segment:expr),+ $(,)?) => {
        $crate::url_path::join(&[$(AsRef::<str>::as_ref(&$segment)),+])
    };
}

#[doc(hidden)]
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

/// Whether a browser takes the text for a path of this site, and a header can hold it.
pub fn is_own_path(text: &str) -> bool {
    let is_path = text.starts_with('/') && !text.starts_with("//");
    is_path && !text.contains(|letter: char| letter == '\\' || letter.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_site_are_own() {
        for own in ["/", "/acme/choose?i=A~1~1", "/deliveries?state=dead", "/acme/ä"] {
            assert!(is_own_path(own), "{own}");
        }
        let foreign = ["", "https://other.test", "//other.test", "/\\other.test", "/\t/other.test"];
        let control = ["/\0", "/\u{b}", "/\u{1b}", "/\u{7f}", "/\u{85}", "/a\r\nb"];
        for other in foreign.into_iter().chain(control) {
            assert!(!is_own_path(other), "{other:?}");
        }
    }

    #[test]
    fn segments_are_encoded() {
        assert_eq!(path!("v1", "orders", "A/B ä?"), "v1/orders/A%2FB%20%C3%A4%3F");
        assert_eq!(path!("v1", "orders", "..", "returnable"), "v1/orders/%00/returnable");
        assert_eq!(path!("v1", "orders", ".", "..."), "v1/orders/%00/...");
    }
}
