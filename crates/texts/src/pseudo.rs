//! The pseudo-languages of the tests, made from the English texts.

use std::borrow::Cow;

use crate::Language;

/// The text with accented letters. People can still read it.
pub(super) fn accented(text: &str) -> Cow<'_, str> {
    text.chars().map(accent).collect::<String>().into()
}

/// The text between the marks of its language: brackets, and for the one from right to left Unicode's
/// marks that turn the order of letters around.
pub(super) fn marked(language: Language, text: String) -> String {
    match language {
        Language::Pseudo => format!("[{text}]"),
        Language::PseudoRtl => format!("\u{202e}[{text}]\u{202c}"),
        Language::En | Language::De | Language::Fr | Language::Es => text,
    }
}

fn accent(letter: char) -> char {
    const PLAIN: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const ACCENTED: &str = "àƀçďéƒĝĥîĵķļɱñôþǫřšţûṽŵẋýžÅƁÇĎÉƑĜĤÎĴĶĻṀÑÔÞǪŘŠŢÛṼŴẊÝŽ";
    let position = PLAIN.chars().position(|plain| plain == letter);
    position.and_then(|position| ACCENTED.chars().nth(position)).unwrap_or(letter)
}
