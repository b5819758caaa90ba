//! The parts of a mail, which are text and HTML alike.

use domain::merchant::Language;
use domain::printable::printable;

/// Values of others are cut at this length. Titles of products can be longer.
pub(super) const MAX_CHARS: usize = 300;

/// A part of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    Heading(String),
    Paragraph(String),
    /// Names and values.
    Facts(Vec<(String, String)>),
    Items(Vec<Item>),
    Steps(Vec<String>),
    Address(Vec<String>),
    Button(Link),
}

/// Units of a return that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) title: String,
    pub(super) details: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) label: String,
    pub(super) url: String,
}

/// The content of a mail.
pub(super) struct Content {
    pub(super) language: Language,
    pub(super) subject: String,
    pub(super) blocks: Vec<Block>,
    /// The pages of the shop.
    pub(super) links: Vec<Link>,
    /// Remarks at the end.
    pub(super) remarks: Vec<String>,
}

/// A value of others in one line, without characters that change how the text around it is shown, and not too long.
pub(super) fn line(text: &str, max_chars: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = printable(&words);
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
