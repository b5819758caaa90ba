//! Tables and detail views.
//!
//! A command lists the columns of its table; each names the field of the response to show. A table fits
//! the width of the terminal, or 80 columns: IDs and times are shortened, columns marked
//! [`Column::wide`] are left out, and long texts end with `…`. `--wide` shows everything.

use std::io;
use std::sync::OnceLock;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, presets};
use platform::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::text;

const DEFAULT_WIDTH: u16 = 80;
const COLUMN_GAP: u16 = 2;
/// Characters of a short ID: the time of a UUID of version 7 in milliseconds, and three random digits.
const SHORT_ID_LENGTH: usize = 18;

/// The layout of all tables of the program.
static LAYOUT: OnceLock<Layout> = OnceLock::new();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A table fits this number of columns.
    Narrow(u16),
    /// A table shows whole values in all columns.
    Wide,
}

impl Layout {
    /// Sets the layout of all tables, once, at the start of the program.
    pub(crate) fn set(wide: bool) {
        let layout = if wide { Self::Wide } else { Self::Narrow(terminal_width()) };
        LAYOUT.get_or_init(|| layout);
    }

    fn current() -> Self {
        LAYOUT.get().copied().unwrap_or(Self::Narrow(DEFAULT_WIDTH))
    }
}

fn terminal_width() -> u16 {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(DEFAULT_WIDTH, |(width, _)| width.0.max(DEFAULT_WIDTH))
}

/// A column of a table, or a line of a detail view.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    cell: Cell,
    is_wide: bool,
}

#[derive(Clone, Copy)]
enum Cell {
    /// The value at a JSON pointer.
    Value(&'static str),
    /// The ID at a JSON pointer.
    Id(&'static str),
    /// The timestamp at a JSON pointer; a table leaves out the seconds.
    Time(&'static str),
    /// The timestamp at a JSON pointer, with seconds.
    ExactTime(&'static str),
    /// A text made from the whole item.
    Computed(fn(&Value) -> String),
}

const fn column(name: &'static str, cell: Cell) -> Column {
    Column { name, cell, is_wide: false }
}

pub(crate) const fn value(name: &'static str, pointer: &'static str) -> Column {
    column(name, Cell::Value(pointer))
}

/// A UUID that the commands also accept in its short form.
pub(crate) const fn id(name: &'static str, pointer: &'static str) -> Column {
    column(name, Cell::Id(pointer))
}

pub(crate) const fn time(name: &'static str, pointer: &'static str) -> Column {
    column(name, Cell::Time(pointer))
}

pub(crate) const fn exact_time(name: &'static str, pointer: &'static str) -> Column {
    column(name, Cell::ExactTime(pointer))
}

pub(crate) const fn computed(name: &'static str, cell: fn(&Value) -> String) -> Column {
    column(name, Cell::Computed(cell))
}

impl Column {
    /// A column that a table shows only with `--wide`.
    pub(crate) const fn wide(self) -> Self {
        Self { is_wide: true, ..self }
    }

    /// The cell of a table.
    fn cell(&self, item: &Value, layout: Layout) -> String {
        let is_short = layout != Layout::Wide;
        match self.cell {
            Cell::Id(pointer) if is_short => printable(&shorten(&text(item.pointer(pointer)))),
            Cell::Time(pointer) if is_short => timestamp(item.pointer(pointer), "%Y-%m-%d %H:%M"),
            _ => self.whole(item),
        }
    }

    fn whole(&self, item: &Value) -> String {
        let text = match self.cell {
            Cell::Value(pointer) | Cell::Id(pointer) => text(item.pointer(pointer)),
            Cell::Time(pointer) | Cell::ExactTime(pointer) => time_at(item, pointer),
            Cell::Computed(compute) => compute(item),
        };
        printable(&text)
    }

    /// An ID or a time is useless without its end.
    const fn is_cuttable(&self) -> bool {
        matches!(self.cell, Cell::Value(_) | Cell::Computed(_))
    }
}

/// A table with a row for each item.
pub(crate) fn table<'a>(items: impl IntoIterator<Item = &'a Value>, columns: &[Column]) -> String {
    table_in(Layout::current(), items, columns)
}

fn table_in<'a>(
    layout: Layout,
    items: impl IntoIterator<Item = &'a Value>,
    columns: &[Column],
) -> String {
    let is_shown = |column: &&Column| layout == Layout::Wide || !column.is_wide;
    let columns: Vec<_> = columns.iter().filter(is_shown).collect();
    let headings = columns.iter().map(|column| column.name.to_uppercase()).collect();
    let cells = |item| columns.iter().map(|column| column.cell(item, layout)).collect();
    let mut table = aligned(std::iter::once(headings).chain(items.into_iter().map(cells)));
    if let Layout::Narrow(width) = layout {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width + COLUMN_GAP);
        table.set_truncation_indicator("…");
        for (cells, column) in table.column_iter_mut().zip(&columns) {
            if !column.is_cuttable() {
                cells.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    lines(&table)
}

/// One item, with a line for each field.
pub(crate) fn details(item: &Value, fields: &[Column]) -> String {
    lines(&aligned(fields.iter().map(|field| vec![field.name.to_owned(), field.whole(item)])))
}

fn aligned(rows: impl Iterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    for cells in rows {
        let mut row = Row::from(cells);
        row.max_height(1);
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, COLUMN_GAP)).set_cell_alignment(CellAlignment::Left);
    }
    table
}

fn lines(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The timestamp at a JSON pointer, or a dash.
pub(crate) fn time_at(value: &Value, pointer: &str) -> String {
    timestamp(value.pointer(pointer), "%Y-%m-%d %H:%M:%SZ")
}

fn timestamp(value: Option<&Value>, format: &str) -> String {
    let parsed = value.and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
    match parsed {
        Some(at) => at.format(format).to_string(),
        None => printable(&text(value)),
    }
}

/// The beginning of a UUID. Other texts stay as they are.
fn shorten(id: &str) -> String {
    let is_uuid = Uuid::try_parse(id).is_ok_and(|uuid| uuid.to_string() == id);
    id.chars().take(if is_uuid { SHORT_ID_LENGTH } else { usize::MAX }).collect()
}

/// Replaces control characters, which could move a terminal's cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests;
