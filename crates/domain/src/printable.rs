//! Characters that change how a terminal or a page shows the text around them.

use serde::{Deserialize as _, Deserializer};

/// Replaces control characters, also line breaks, and bidirectional ones.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// Writes line breaks as `\n` and `\r`, and replaces other characters like [`printable`]. A value of others thus cannot
/// add a line to a message.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            c if is_printable(c) => line.push(c),
            _ => line.push(char::REPLACEMENT_CHARACTER),
        }
    }
    line
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_are_visible_in_one_line() {
        assert_eq!(one_line("a\r\nb\tc\u{1b}"), "a\\r\\nb\u{fffd}c\u{fffd}");
        assert_eq!(one_line("Größe 15 €"), "Größe 15 €");
    }
}
