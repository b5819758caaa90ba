//! The JSONPath (RFC 9535) of a value.
//!
//! A path is a chain of borrowed steps, so it allocates only when an error is reported.

use std::fmt::{self, Write};

/// Longer keys are truncated, so that a report cannot outgrow its document.
const MAX_KEY_CHARS: usize = 128;

#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("$"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Self::Key(parent, key) if is_plain(key) => write!(f, "{parent}.{key}"),
            Self::Key(parent, key) => {
                write!(f, "{parent}")?;
                write_quoted(f, key)
            }
        }
    }
}

/// Whether the key may follow a dot without quotes.
fn is_plain(key: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    key.len() <= MAX_KEY_CHARS
        && key.starts_with(letter)
        && key.chars().all(|c| letter(c) || c.is_ascii_digit())
}

fn write_quoted(f: &mut fmt::Formatter<'_>, key: &str) -> fmt::Result {
    f.write_str("['")?;
    for (position, c) in key.chars().enumerate() {
        if position == MAX_KEY_CHARS {
            f.write_char('…')?;
            break;
        }
        match c {
            '\'' => f.write_str("\\'")?,
            '\\' => f.write_str("\\\\")?,
            '\u{8}' => f.write_str("\\b")?,
            '\t' => f.write_str("\\t")?,
            '\n' => f.write_str("\\n")?,
            '\u{c}' => f.write_str("\\f")?,
            '\r' => f.write_str("\\r")?,
            c if u32::from(c) < 0x20 => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_str("']")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, expected: &str) {
        assert_eq!(Path::Key(&Path::Index(&Path::Root, 3), key).to_string(), expected);
    }

    #[test]
    fn special_keys_are_quoted() {
        check("sku", "$[3].sku");
        check("street1", "$[3].street1");
        check("_id", "$[3]._id");
        check("1st", "$[3]['1st']");
        check("the service", "$[3]['the service']");
        check("", "$[3]['']");
        check("größe", "$[3]['größe']");
        check("it's", r"$[3]['it\'s']");
        check(r"a\b", r"$[3]['a\\b']");
        check("a\0b\n", r"$[3]['a\u0000b\n']");
    }

    #[test]
    fn a_long_key_is_truncated() {
        let written = Path::Key(&Path::Root, &"k".repeat(1000)).to_string();
        assert_eq!(written, format!("$['{}…']", "k".repeat(128)));
    }
}
