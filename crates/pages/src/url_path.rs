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

fn encode(segment: &str) -> String {
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
    #[test]
    fn segments_are_encoded() {
        assert_eq!(path!("v1", "orders", "A/B ä?"), "v1/orders/A%2FB%20%C3%A4%3F");
    }
}
