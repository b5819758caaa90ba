//! Tables as data: one line for each column. On small screens a row is a card, and each cell shows the label of its
//! column.

use askama::Template;

use crate::markup::Markup;

#[derive(Template)]
#[template(path = "table.html")]
pub(crate) struct Table {
    label: String,
    /// Label and class of the columns.
    columns: Vec<(&'static str, &'static str)>,
    rows: Vec<Row>,
    /// The index of the column that names the row.
    head: usize,
}

#[derive(Default)]
struct Row {
    /// Identifier and seconds between two refreshes.
    live: Option<(String, u32)>,
    cells: Vec<Markup>,
}

impl Table {
    /// A table of records, to which columns are added.
    pub(crate) fn of<T>(label: impl Into<String>, records: &[T]) -> Columns<'_, T> {
        let rows = records.iter().map(|_| Row::default()).collect();
        let table = Self { label: label.into(), columns: Vec::new(), rows, head: usize::MAX };
        Columns { records, table }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// A table whose columns are being added.
pub(crate) struct Columns<'a, T> {
    records: &'a [T],
    table: Table,
}

impl<T> Columns<'_, T> {
    /// A column whose cells have a class.
    pub(crate) fn classed(
        mut self,
        class: &'static str,
        label: &'static str,
        cell: impl Fn(&T) -> Markup,
    ) -> Self {
        self.table.columns.push((label, class));
        for (row, record) in self.table.rows.iter_mut().zip(self.records) {
            row.cells.push(cell(record));
        }
        self
    }

    pub(crate) fn cell(self, label: &'static str, cell: impl Fn(&T) -> Markup) -> Self {
        self.classed("", label, cell)
    }

    /// A column that some people do not see.
    pub(crate) fn cell_if(
        self,
        is_shown: bool,
        label: &'static str,
        cell: impl Fn(&T) -> Markup,
    ) -> Self {
        if is_shown { self.cell(label, cell) } else { self }
    }

    /// A column with long identifiers.
    pub(crate) fn wrapped(self, label: &'static str, cell: impl Fn(&T) -> Markup) -> Self {
        self.classed("wrap-anywhere", label, cell)
    }

    pub(crate) fn number(self, label: &'static str, cell: impl Fn(&T) -> Markup) -> Self {
        self.classed("number", label, cell)
    }

    /// The column that names the row.
    pub(crate) fn head(self, label: &'static str, cell: impl Fn(&T) -> Markup) -> Self {
        self.named().cell(label, cell)
    }

    pub(crate) fn wrapped_head(self, label: &'static str, cell: impl Fn(&T) -> Markup) -> Self {
        self.named().wrapped(label, cell)
    }

    fn named(mut self) -> Self {
        self.table.head = self.table.columns.len();
        self
    }

    /// Rows that the page refreshes, each with its identifier.
    pub(crate) fn live(mut self, seconds: u32, id: impl Fn(&T) -> String) -> Self {
        for (row, record) in self.table.rows.iter_mut().zip(self.records) {
            row.live = Some((id(record), seconds));
        }
        self
    }

    pub(crate) fn table(self) -> Table {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markup::text;

    #[test]
    fn every_cell_has_the_label_of_its_column() {
        let table = Table::of("Orders", &["A"])
            .wrapped_head("Order", |order| text(order))
            .number("Units", |_| text(2))
            .live(5, |order| format!("order-{order}"))
            .table();
        let html = table.render().unwrap();
        for part in [
            r#"aria-label="Orders""#,
            r#"<th role="columnheader" scope="col" class="number">Units</th>"#,
            r#"<tr role="row" id="order-A" data-live="5">"#,
            r#"<th role="rowheader" data-label="Order" scope="row" class="wrap-anywhere">A</th>"#,
            r#"<td role="cell" data-label="Units" class="number">2</td>"#,
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
    }
}
