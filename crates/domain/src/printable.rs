//! Characters that change how a terminal or a page shows the text around them.

use serde::{Deserialize as _, Deserializer};

/// Replaces control characters, also line breaks, and bidirectional ones.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// Reads a text and replaces its characters like [`printable`].
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|text| printable(&text))
}

/// Whether a character is neither a control character nor a bidirectional one, which can make an identifier look
/// like another.
pub fn is_printable(c: char) -> bool {
    let is_bidirectional = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !is_bidirectional
}
