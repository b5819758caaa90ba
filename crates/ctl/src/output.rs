//! Output of the commands: tables for people, JSON for scripts.
//!
//! One renderer serves every resource. A command lists the columns of its table; each names the
//! field of the response to show.

use std::io::{self, ErrorKind, Write as _};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use iso_currency::Currency;
use platform::Timestamp;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

/// A column of a table, or a line of a detail view.
pub(crate) struct Column {
    name: &'static str,
    cell: Cell,
}

enum Cell {
    /// The value at a JSON pointer.
    Value(&'static str),
    /// The timestamp at a JSON pointer.
    Time(&'static str),
    /// A text made from the whole item.
    Computed(fn(&Value) -> String),
}

pub(crate) const fn value(name: &'static str, pointer: &'static str) -> Column {
    Column { name, cell: Cell::Value(pointer) }
}

pub(crate) const fn time(name: &'static str, pointer: &'static str) -> Column {
    Column { name, cell: Cell::Time(pointer) }
}

pub(crate) const fn computed(name: &'static str, cell: fn(&Value) -> String) -> Column {
    Column { name, cell: Cell::Computed(cell) }
}

impl Column {
    fn render(&self, item: &Value) -> String {
        let text = match self.cell {
            Cell::Value(pointer) => text(item.pointer(pointer)),
            Cell::Time(pointer) => timestamp(item.pointer(pointer)),
            Cell::Computed(compute) => compute(item),
        };
        printable(&text)
    }
}

impl Format {
    pub(crate) fn new(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }

    /// Prints a response as JSON, or as the text that `render` makes of it.
    pub(crate) fn print(
        self,
        response: &Value,
        render: impl FnOnce(&Value) -> String,
    ) -> anyhow::Result<()> {
        let text = match self {
            Self::Json => format!("{response:#}\n"),
            Self::Text => render(response),
        };
        Ok(print(&text)?)
    }

    /// Prints the list at a JSON pointer of a response.
    pub(crate) fn print_table(
        self,
        response: &Value,
        pointer: &str,
        columns: &[Column],
    ) -> anyhow::Result<()> {
        self.print(response, |response| table(items(response, pointer), columns))
    }

    /// Prints one resource.
    pub(crate) fn print_details(self, response: &Value, fields: &[Column]) -> anyhow::Result<()> {
        self.print(response, |response| details(response, fields))
    }
}

/// Prints to standard output. A closed pipe is not an error.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// A table with a row for each item.
pub(crate) fn table<'a>(items: impl IntoIterator<Item = &'a Value>, columns: &[Column]) -> String {
    let headings = columns.iter().map(|column| column.name.to_uppercase()).collect();
    let cells = |item| columns.iter().map(|column| column.render(item)).collect();
    align(std::iter::once(headings).chain(items.into_iter().map(cells)))
}

/// One item, with a line for each field.
pub(crate) fn details(item: &Value, fields: &[Column]) -> String {
    align(fields.iter().map(|field| vec![field.name.to_owned(), field.render(item)]))
}

fn align(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2)).set_cell_alignment(CellAlignment::Left);
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// A new secret, if the response has one at the JSON pointer.
pub(crate) fn new_secret(name: &str, response: &Value, pointer: &str) -> String {
    match response.pointer(pointer).and_then(Value::as_str) {
        Some(secret) => format!("\n{name}: {secret}\nStore it now: it is not shown again.\n"),
        None => String::new(),
    }
}

/// The list at a JSON pointer.
pub(crate) fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The text at a JSON pointer, or a dash.
pub(crate) fn text_at(value: &Value, pointer: &str) -> String {
    text(value.pointer(pointer))
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::Array(items)) => join(items.iter().map(|item| text(Some(item)))),
        Some(other) => other.to_string(),
    }
}

/// Texts separated by commas, or a dash.
pub(crate) fn join(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<_> = texts.collect();
    if texts.is_empty() { "-".to_owned() } else { texts.join(", ") }
}

fn timestamp(value: Option<&Value>) -> String {
    let parsed = value.and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
    match parsed {
        Some(at) => at.format("%Y-%m-%d %H:%M:%SZ").to_string(),
        None => text(value),
    }
}

/// The timestamp at a JSON pointer, or a dash.
pub(crate) fn time_at(value: &Value, pointer: &str) -> String {
    timestamp(value.pointer(pointer))
}

/// Replaces control characters, which could move a terminal's cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// An amount in minor units, written in major units.
pub(crate) fn money(cents: i64, currency: &str) -> String {
    let digits = Currency::from_code(currency).and_then(Currency::exponent).unwrap_or(2);
    let unit = 10_i64.pow(digits.into());
    if digits == 0 {
        return format!("{cents} {currency}");
    }
    let (whole, part) = (cents / unit, (cents % unit).abs());
    format!("{whole}.{part:0width$} {currency}", width = usize::from(digits))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_aligned_without_trailing_space() {
        let rows = json!([
            { "id": "a", "name": "Ünïcødé 商店", "tags": ["x"] },
            { "id": "longer", "name": "", "tags": ["\u{1b}[2Jx\ny", true] },
            { "id": 7, "name": null, "at": "2026-11-15T03:48:13.5Z", "tags": [] },
        ]);
        let columns =
            [value("id", "/id"), value("name", "/name"), time("at", "/at"), value("tag", "/tags")];
        expect![[r#"
            ID      NAME          AT                    TAG
            a       Ünïcødé 商店  -                     x
            longer                -                     �[2Jx�y, yes
            7       -             2026-11-15 03:48:13Z  -
        "#]]
        .assert_eq(&table(items(&rows, ""), &columns));
    }
}
