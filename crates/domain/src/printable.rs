//! Characters that change how a terminal or a page shows the text around them.

/// Replaces control characters, also line breaks, and bidirectional ones.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// Whether a character is neither a control character nor a bidirectional one, which can make an identifier look
/// like another.
pub fn is_printable(c: char) -> bool {
    let is_bidirectional = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !is_bidirectional
}
