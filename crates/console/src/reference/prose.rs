//! Descriptions of the API documents: paragraphs with names in backticks.

/// A part of a paragraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Phrase {
    pub(super) text: String,
    pub(super) is_code: bool,
}

pub(super) type Paragraph = Vec<Phrase>;

/// The paragraphs of a description.
pub(super) fn paragraphs(text: &str) -> Vec<Paragraph> {
    text.split("\n\n").map(str::trim).filter(|text| !text.is_empty()).map(phrases).collect()
}

/// The parts of one paragraph.
pub(super) fn phrases(paragraph: &str) -> Paragraph {
    let parts = paragraph.split('`').enumerate();
    let phrases =
        parts.map(|(index, text)| Phrase { text: text.to_owned(), is_code: index % 2 == 1 });
    phrases.filter(|phrase| !phrase.text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_backticks_are_code() {
        let text = paragraphs("Requires `read`.\n\nOnce.");
        let shown: Vec<Vec<_>> = text
            .iter()
            .map(|it| it.iter().map(|phrase| (phrase.text.as_str(), phrase.is_code)).collect())
            .collect();
        assert_eq!(
            shown,
            [vec![("Requires ", false), ("read", true), (".", false)], vec![("Once.", false)]]
        );
        assert!(paragraphs("").is_empty());
    }
}
