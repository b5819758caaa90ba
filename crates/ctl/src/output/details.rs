//! Detail views and paragraphs, whose lines fit the terminal.

use serde_json::Value;

use super::layout::{Layout, message_width};
use super::table::{COLUMN_GAP, Column};
use domain::printable::printable;

/// One item, with a line for each field. Long values continue on further lines.
pub(crate) fn details(item: &Value, fields: &[Column]) -> String {
    details_in(Layout::current(), item, fields)
}

fn details_in(layout: Layout, item: &Value, fields: &[Column]) -> String {
    let texts: Vec<_> = fields.iter().map(|field| (field.name, field.text(item))).collect();
    named_texts_in(layout, &texts)
}

/// A line for each name and its text. Long texts continue on further lines.
pub(crate) fn named_texts(texts: &[(&str, String)]) -> String {
    named_texts_in(Layout::current(), texts)
}

fn named_texts_in(layout: Layout, texts: &[(&str, String)]) -> String {
    let longest = texts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let indent = longest + usize::from(COLUMN_GAP);
    let line = |(name, text): &(&str, String)| {
        let text = wrap_in(layout, text, indent);
        format!("{name:<indent$}{text}").trim_end().to_owned() + "\n"
    };
    texts.iter().map(line).collect()
}

/// A text of several lines, without control characters. Long lines continue on further lines.
pub(crate) fn paragraph(text: &str) -> String {
    let layout = Layout::current();
    text.lines().map(|line| wrap_in(layout, &printable(line), 0) + "\n").collect()
}

/// Breaks a line after spaces and commas, so that it fits the terminal. Further lines are indented.
fn wrap_in(layout: Layout, text: &str, indent: usize) -> String {
    let Layout::Narrow(width) = layout else { return text.to_owned() };
    let width = usize::from(width).saturating_sub(indent);
    break_line(text, &[' ', ','], width, width).join(&format!("\n{}", " ".repeat(indent)))
}

/// A message for standard error. Long lines continue on further lines if that is a terminal.
pub(crate) fn wrapped_message(text: &str) -> String {
    message_width().map_or_else(|| text.to_owned(), |width| wrap_message(text, width.into()))
}

/// Breaks the lines of a message at spaces. Further lines are indented by two more columns.
fn wrap_message(text: &str, width: usize) -> String {
    let wrap = |line: &str| {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let width = width.saturating_sub(indent);
        let lines = break_line(text, &[' '], width, width.saturating_sub(2));
        " ".repeat(indent) + &lines.join(&format!("\n{}", " ".repeat(indent + 2)))
    };
    text.lines().map(wrap).collect::<Vec<_>>().join("\n")
}

/// Breaks a line after these characters, into a first line and further lines of these widths. A word stays
/// whole, so that it can be copied.
fn break_line(text: &str, ends: &[char], first: usize, further: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for piece in text.split_inclusive(ends) {
        let width = if lines.is_empty() { first } else { further };
        let columns = line.chars().count() + piece.trim_end().chars().count();
        if columns > width && !line.is_empty() {
            lines.push(line.trim_end().to_owned());
            line.clear();
            line.push_str(piece.trim_start());
        } else {
            line.push_str(piece);
        }
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::super::{time, value};
    use super::*;

    const FIELDS: &[Column] =
        &[value("id", "/id"), time("created", "/at"), value("detail", "/detail")];

    fn delivery() -> Value {
        json!({
            "id": "0198c0de-0000-7abc-8000-0123456789ab", "at": "2026-11-15T03:48:13.5Z",
            "detail": "the endpoint responded with 503 and gets no messages until it is checked",
        })
    }

    #[test]
    fn a_detail_view_shows_whole_values_in_eighty_columns() {
        expect![[r#"
            id       0198c0de-0000-7abc-8000-0123456789ab
            created  2026-11-15 03:48:13Z
            detail   the endpoint responded with 503 and gets no messages until it is
                     checked
        "#]]
        .assert_eq(&details_in(Layout::Narrow(80), &delivery(), FIELDS));
        let wide = details_in(Layout::Wide, &delivery(), FIELDS);
        assert!(wide.ends_with(" until it is checked\n"), "{wide}");
    }

    #[test]
    fn a_line_is_broken_after_spaces_and_commas_only() {
        let wrapped = |text: &str| wrap_in(Layout::Narrow(12), text, 2);
        assert_eq!(wrapped("one two three"), "one two\n  three");
        assert_eq!(wrapped(r#"{"a":1,"b":2,"c":3}"#), "{\"a\":1,\n  \"b\":2,\n  \"c\":3}");
        assert_eq!(wrapped("see https://acme.example/rmas"), "see\n  https://acme.example/rmas");
        assert_eq!(wrapped("TOO_SMALL, OTHER"), "TOO_SMALL,\n  OTHER");
        assert_eq!(wrapped(""), "");
    }

    #[test]
    fn a_message_is_broken_at_spaces_and_keeps_its_lines() {
        let message = "error: some fields are not valid\n  $.url: see https://acme.example/a,b,c/rmas\n  \
                       request id 0198c0de";
        expect![[r#"
            error: some fields
              are not valid
              $.url: see
                https://acme.example/a,b,c/rmas
              request id
                0198c0de"#]]
        .assert_eq(&wrap_message(message, 20));
        assert_eq!(wrap_message(message, 80), message);
        // The first line may fill the width.
        assert_eq!(wrap_message("error: it failed so far", 16), "error: it failed\n  so far");
    }

    #[test]
    fn a_paragraph_keeps_its_lines() {
        assert_eq!(paragraph("one\ntwo \u{1b}[2J"), "one\ntwo \u{fffd}[2J\n");
        assert_eq!(paragraph(""), "");
    }
}
