//! Paths of URLs.

/// The segments of a path, each percent-encoded and joined with slashes.
#[macro_export]
macro_rules! path {
    ($($segment:expr),+ $(,)?) => {
        $crate::url_path::join(&[$(AsRef::<str>::as_ref(&$segment)),+])
    };
}

#[doc(hidden)]
pub use platform::url_path::join;

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
}
