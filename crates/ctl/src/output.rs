//! What goes to standard output: tables for people, JSON for scripts.

use std::io::{self, ErrorKind, Write as _};

use anyhow::Context as _;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use iso_currency::Currency;
use platform::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How an answer is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

impl Format {
    /// Shows an answer: as it came, or read and put into words.
    pub(crate) fn show<T: DeserializeOwned>(
        self,
        answer: Value,
        words: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        let text = match self {
            Self::Json => format!("{answer:#}\n"),
            Self::Text => {
                words(&serde_json::from_value(answer).context("an answer that is not ours")?)
            }
        };
        Ok(print(&text)?)
    }
}

/// Prints to standard output. That nobody reads on is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Rows below their headings, in columns.
pub(crate) fn table<const N: usize>(
    headings: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let rows = rows.into_iter().map(|row| row.map(|cell| printable(&cell)));
    columns(std::iter::once(headings.map(str::to_uppercase)).chain(rows))
}

/// One thing, a line for each of its properties.
pub(crate) fn properties<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    columns(rows.into_iter().map(|(name, value)| [name.to_owned(), printable(&value)]))
}

fn columns<const N: usize>(rows: impl Iterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2)).set_cell_alignment(CellAlignment::Left);
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// A secret that was just made.
pub(crate) fn once(name: &str, secret: &str) -> String {
    format!("\n{name}: {secret}\nKeep it now: it is not shown again.\n")
}

/// Text without characters that would move a terminal's cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// An amount in minor units, as people write it.
pub(crate) fn money(cents: i64, currency: &str) -> String {
    let digits = Currency::from_code(currency).and_then(Currency::exponent).unwrap_or(2);
    let unit = 10_i64.pow(digits.into());
    if digits == 0 {
        return format!("{cents} {currency}");
    }
    let (whole, part) = (cents / unit, (cents % unit).abs());
    format!("{whole}.{part:0width$} {currency}", width = usize::from(digits))
}

pub(crate) fn time(at: &Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// A word for what is not there.
pub(crate) fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| text.to_string())
}

pub(crate) fn yes_or_no(answer: bool) -> String {
    if answer { "yes" } else { "no" }.to_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn columns_line_up_and_nothing_trails() {
        let rows = [["a", "Ünïcødé 商店", "x"], ["longer", "", "\u{1b}[2Jx\ny"], ["b", "c", ""]];
        let rows = rows.map(|row| row.map(str::to_owned));
        expect![[r#"
            ID      NAME          TAG
            a       Ünïcødé 商店  x
            longer                �[2Jx�y
            b       c
        "#]]
        .assert_eq(&table(["id", "name", "tag"], rows));
    }
}
