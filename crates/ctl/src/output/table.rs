//! Tables.
//!
//! A command lists the columns of its table; each names the field of the response to show. A table fits
//! the width of the terminal, or 80 columns. Its first column, which the next command needs, is never
//! shortened. The others follow one rule: columns marked [`Column::wide`] are left out, UUIDs and times are
//! short, and then columns marked [`Column::leave_out`] are left out until the long texts of the rest,
//! which end with `…`, have [`MIN_TEXT_WIDTH`]. If that is not enough, texts marked [`Column::whole`] are
//! shortened too, and only then further columns are left out. A column whose value is the same in all rows
//! can have another rank ([`Column::leave_out_same`]). `--wide` shows everything.

use std::cell::RefCell;
use std::cmp::Reverse;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, presets};
use platform::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::layout::Layout;
use super::text;
use domain::printable::printable;

pub(super) const COLUMN_GAP: u16 = 2;
/// A table leaves out columns before it shortens a text further.
const MIN_TEXT_WIDTH: u16 = 10;
/// The rank of a column that a table leaves out only as a last resort.
const LAST: u8 = u8::MAX;
/// Characters of a short ID: the time of a UUID of version 7 in milliseconds, and three random digits.
const SHORT_ID_LENGTH: usize = 18;

thread_local! {
    /// The columns that tables left out since the last output.
    static LEFT_OUT: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Records a column that a table left out. Several tables of one output may leave out the same column.
fn leave_out(name: &'static str) {
    LEFT_OUT.with_borrow_mut(|all| {
        if !all.contains(&name) {
            all.push(name);
        }
    });
}

/// The columns that tables left out since the last call.
pub(super) fn take_left_out() -> Vec<&'static str> {
    LEFT_OUT.take()
}

/// A column of a table, or a line of a detail view.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub(super) name: &'static str,
    cell: Cell,
    is_wide: bool,
    is_whole: bool,
    /// Lower ranks are left out first.
    rank: u8,
    /// The rank if all of several rows have the same value.
    rank_if_same: Option<u8>,
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
    Column { name, cell, is_wide: false, is_whole: false, rank: LAST, rank_if_same: None }
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

    /// A column that is shortened only as a last resort, because another command needs its value.
    pub(crate) const fn whole(self) -> Self {
        Self { is_whole: true, ..self }
    }

    /// A column that a table leaves out if it would be too wide. Rank 1 is left out first.
    pub(crate) const fn leave_out(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    /// A column that a table leaves out in this order if all rows have the same value.
    pub(crate) const fn leave_out_same(self, rank: u8) -> Self {
        Self { rank_if_same: Some(rank), ..self }
    }

    /// The column with the rank for these values.
    fn ranked(self, mut values: impl Iterator<Item = String>) -> Self {
        let first = values.next();
        let has_several = values.next().is_some_and(|value| Some(value) == first);
        let is_same = has_several && values.all(|value| Some(&value) == first.as_ref());
        Self { rank: self.rank_if_same.filter(|_| is_same).unwrap_or(self.rank), ..self }
    }

    /// The cell of a table.
    fn cell(&self, item: &Value, layout: Layout) -> String {
        let is_short = layout != Layout::Wide;
        match self.cell {
            Cell::Id(pointer) if is_short => printable(&shorten(&text(item.pointer(pointer)))),
            Cell::Time(pointer) if is_short => timestamp(item.pointer(pointer), "%Y-%m-%d %H:%M"),
            _ => self.text(item),
        }
    }

    pub(super) fn text(&self, item: &Value) -> String {
        let text = match self.cell {
            Cell::Value(pointer) | Cell::Id(pointer) => text(item.pointer(pointer)),
            Cell::Time(pointer) | Cell::ExactTime(pointer) => time_at(item, pointer),
            Cell::Computed(compute) => compute(item),
        };
        printable(&text)
    }

    /// Whether the column may be shortened. An ID or a time is useless without its end.
    const fn is_cuttable(&self, cut_whole: bool) -> bool {
        (cut_whole || !self.is_whole) && matches!(self.cell, Cell::Value(_) | Cell::Computed(_))
    }
}

/// The columns, with the named ones also in a table without `--wide`.
pub(crate) fn with_shown(columns: &[Column], names: &[&str]) -> Vec<Column> {
    let show = |column: &Column| Column {
        is_wide: column.is_wide && !names.contains(&column.name),
        rank: if names.contains(&column.name) { LAST } else { column.rank },
        ..*column
    };
    columns.iter().map(show).collect()
}

/// The columns except for one.
pub(crate) fn without(columns: &[Column], name: &str) -> Vec<Column> {
    columns.iter().filter(|column| column.name != name).copied().collect()
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
    columns.iter().filter(|column| !is_shown(column)).for_each(|column| leave_out(column.name));
    let items: Vec<_> = items.into_iter().collect();
    let ranked =
        |column: &Column| column.ranked(items.iter().map(|item| column.cell(item, layout)));
    let columns: Vec<_> = columns.iter().filter(is_shown).map(ranked).collect();
    let headings = columns.iter().map(|column| column.name.to_uppercase()).collect();
    let cells = |item: &&Value| columns.iter().map(|column| column.cell(item, layout)).collect();
    let mut table = aligned(std::iter::once(headings).chain(items.iter().map(cells)));
    if let Layout::Narrow(width) = layout {
        shrink_to_width(&mut table, &columns, width);
    }
    lines(&table)
}

/// Leaves out columns and shortens texts until the table fits the width.
fn shrink_to_width(table: &mut Table, columns: &[Column], width: u16) {
    let (left_out, cut_whole) = left_out(columns, &table.column_max_content_widths(), width);
    let names = columns.iter().enumerate().filter(|(index, _)| left_out.contains(index));
    names.for_each(|(_, column)| leave_out(column.name));
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width + COLUMN_GAP);
    table.set_truncation_indicator("…");
    for (index, (cells, column)) in table.column_iter_mut().zip(columns).enumerate() {
        if left_out.contains(&index) {
            cells.set_constraint(ColumnConstraint::Hidden);
        } else if index == 0 || !column.is_cuttable(cut_whole) {
            cells.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
}

/// The positions of the columns that are left out, and whether whole texts must be shortened. The first column
/// always stays.
fn left_out(columns: &[Column], widths: &[u16], width: u16) -> (Vec<usize>, bool) {
    let least_width = |index: usize, cut_whole: bool| {
        let (column, width) = columns.iter().zip(widths).nth(index)?;
        let is_shortened = index > 0 && column.is_cuttable(cut_whole);
        let least = if is_shortened { (*width).min(MIN_TEXT_WIDTH) } else { *width };
        Some(usize::from(least) + usize::from(COLUMN_GAP))
    };
    let mut left_out = Vec::new();
    let fits = |left_out: &[usize], cut_whole: bool| {
        let shown = (0..columns.len()).filter(|index| !left_out.contains(index));
        let total: usize = shown.filter_map(|index| least_width(index, cut_whole)).sum();
        total <= usize::from(width + COLUMN_GAP)
    };
    let mut candidates: Vec<_> = columns
        .iter()
        .enumerate()
        .skip(1)
        .map(|(index, column)| (column.rank, Reverse(index)))
        .collect();
    candidates.sort_unstable();
    for (rank, Reverse(index)) in candidates {
        let cut_whole = rank == LAST;
        if fits(&left_out, cut_whole) {
            break;
        }
        left_out.push(index);
    }
    let cut_whole = !fits(&left_out, false);
    (left_out, cut_whole)
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

#[cfg(test)]
mod tests;
