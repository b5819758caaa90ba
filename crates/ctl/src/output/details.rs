//! Detail views and paragraphs, whose lines fit the terminal.

use serde_json::Value;

use super::layout::Layout;
use super::table::{COLUMN_GAP, Column, printable};

/// One item, with a line for each field. Long values continue on further lines.
pub(crate) fn details(item: &Value, fields: &[Column]) -> String {
    details_in(Layout::current(), item, fields)
}

fn details_in(layout: Layout, item: &Value, fields: &[Column]) -> String {
    let longest = fields.iter().map(|field| field.name.len()).max().unwrap_or_default();
    let indent = longest + usize::from(COLUMN_GAP);
    let line = |field: &Column| {
        let text = wrap_in(layout, &field.text(item), indent);
        format!("{:<indent$}{text}", field.name).trim_end().to_owned() + "\n"
    };
    fields.iter().map(line).collect()
}

/// A text of several lines, without control characters. Long lines continue on further lines.
pub(crate) fn paragraph(text: &str) -> String {
    let layout = Layout::current();
    text.lines().map(|line| wrap_in(layout, &printable(line), 0) + "\n").collect()
}

/// Breaks a line after spaces and commas, so that it fits the terminal. Further lines are indented. A word
/// stays whole, so that it can be copied.
fn wrap_in(layout: Layout, text: &str, indent: usize) -> String {
    let Layout::Narrow(width) = layout else { return text.to_owned() };
    let width = usize::from(width).saturating_sub(indent);
    let (mut lines, mut line) = (Vec::new(), String::new());
    for piece in text.split_inclusive([' ', ',']) {
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
    lines.join(&format!("\n{}", " ".repeat(indent)))
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
            "detail": "the endpoint responded with 410 and gets no messages until it is resumed",
        })
    }

    #[test]
    fn a_detail_view_shows_whole_values_in_eighty_columns() {
        expect![[r#"
            id       0198c0de-0000-7abc-8000-0123456789ab
            created  2026-11-15 03:48:13Z
            detail   the endpoint responded with 410 and gets no messages until it is
                     resumed
        "#]]
        .assert_eq(&details_in(Layout::Narrow(80), &delivery(), FIELDS));
        let wide = details_in(Layout::Wide, &delivery(), FIELDS);
        assert!(wide.ends_with(" until it is resumed\n"), "{wide}");
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
    fn a_paragraph_keeps_its_lines() {
        assert_eq!(paragraph("one\ntwo \u{1b}[2J"), "one\ntwo \u{fffd}[2J\n");
        assert_eq!(paragraph(""), "");
    }
}
