//! Output of the commands: tables for people, JSON for scripts.

mod details;
mod errors;
mod layout;
mod shell;
mod table;
mod terminal;

use domain::printable::one_line;
use iso_currency::Currency;
use serde_json::Value;

pub(crate) use details::{details, named_texts, paragraph, wrapped_message};
pub(crate) use errors::{causes, file_name};
pub(crate) use layout::Layout;
pub(crate) use shell::command;
use table::take_left_out;
pub(crate) use table::{
    Column, computed, exact_time, id, table, time, time_at, value, with_shown, without,
};
pub use terminal::print;
pub(crate) use terminal::{is_stderr_terminal, message, print_json, print_own, write_own};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

impl Format {
    pub(crate) fn new(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }

    /// Prints a response as JSON, or as the text that `render` makes of it. In a terminal, the columns that
    /// its tables left out are named below.
    pub(crate) fn print(
        self,
        response: &Value,
        render: impl FnOnce(&Value) -> String,
    ) -> anyhow::Result<()> {
        match self {
            Self::Json => print_json(response)?,
            Self::Text => print(&render(response))?,
        }
        let left_out = take_left_out();
        if self == Self::Text && !left_out.is_empty() && terminal::is_stdout_terminal() {
            message(&format!("columns left out: {}; --wide shows all", left_out.join(", ")));
        }
        Ok(())
    }

    /// Prints the list at a JSON pointer of a response.
    pub(crate) fn print_table(
        self,
        response: &Value,
        pointer: &str,
        columns: &[Column],
    ) -> anyhow::Result<()> {
        self.print(response, |response| table(items(response, pointer), columns))?;
        if self == Self::Text {
            let shown = items(response, pointer).len();
            if shown == 0 {
                message("nothing found");
            } else if response.get("has_more") == Some(&Value::Bool(true)) {
                message(&format!("only {shown} are shown, and there are more: see --limit"));
            }
        }
        Ok(())
    }

    /// Prints one resource.
    pub(crate) fn print_details(self, response: &Value, fields: &[Column]) -> anyhow::Result<()> {
        self.print(response, |response| details(response, fields))
    }
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

/// The text at a JSON pointer in one line, for messages that are not a table; or a dash.
pub(crate) fn line_at(value: &Value, pointer: &str) -> String {
    one_line(&text_at(value, pointer))
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

/// An amount in minor units, written in major units.
pub(crate) fn money(cents: i64, currency: &str) -> String {
    let digits = Currency::from_code(currency).and_then(Currency::exponent).unwrap_or(2);
    let unit = 10_i64.pow(digits.into());
    if digits == 0 {
        return format!("{cents} {currency}");
    }
    let whole = cents / unit;
    let part = (cents % unit).abs();
    format!("{whole}.{part:0width$} {currency}", width = usize::from(digits))
}

/// A number of things, for example `1 order` or `2 orders`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_several() {
        assert_eq!([0, 1, 2].map(|n| count(n, "order")), ["0 orders", "1 order", "2 orders"]);
    }
}
