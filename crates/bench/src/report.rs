//! Tables of figures, and the goals that some of them must meet.

/// A Markdown table with aligned columns, which is also readable in a terminal. The first column has names, the
/// others have numbers.
pub(crate) struct Table {
    title: String,
    rows: Vec<Vec<String>>,
    note: String,
}

/// A limit of a figure.
pub(crate) struct Goal {
    pub(crate) figure: String,
    pub(crate) value: f64,
    pub(crate) at_most: f64,
}

/// The tables and goals of one benchmark.
#[derive(Default)]
pub(crate) struct Report {
    tables: Vec<Table>,
    pub(crate) goals: Vec<Goal>,
}

impl Report {
    pub(crate) fn table(&mut self, table: Table) {
        self.tables.push(table);
    }

    pub(crate) fn goal(&mut self, goal: Goal) {
        self.goals.push(goal);
    }

    pub(crate) fn markdown(&self) -> String {
        self.tables.iter().map(Table::markdown).collect()
    }
}

impl Goal {
    pub(crate) fn is_met(&self) -> bool {
        self.value <= self.at_most
    }
}

/// The goals with their figures.
pub(crate) fn goals_table(goals: &[Goal]) -> Table {
    let mut table = Table::new("Goals", &["figure", "measured", "at most", "result"]);
    for goal in goals {
        let result = if goal.is_met() { "met" } else { "missed" };
        table.row(&goal.figure, [number(goal.value), number(goal.at_most), result.to_owned()]);
    }
    table
}

impl Table {
    pub(crate) fn new(title: &str, headings: &[&str]) -> Self {
        let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
        Self { title: title.to_owned(), rows: vec![headings], note: String::new() }
    }

    pub(crate) fn row(&mut self, name: &str, cells: impl IntoIterator<Item = String>) {
        self.rows.push([name.to_owned()].into_iter().chain(cells).collect());
    }

    /// A line below the table.
    pub(crate) fn note(&mut self, note: &str) {
        self.note = format!("\n{note}\n");
    }

    pub(crate) fn markdown(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
            });
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let separator = widths.iter().enumerate().map(|(column, width)| {
            let dashes = "-".repeat(width.saturating_sub(1));
            if column == 0 { format!("-{dashes}") } else { format!("{dashes}:") }
        });
        let separator = line(&separator.collect());
        let mut lines = self.rows.iter().map(line);
        let headings = lines.next().unwrap_or_default();
        let rest: String = lines.collect();
        format!("## {}\n\n{headings}{separator}{rest}{}\n", self.title, self.note)
    }
}

/// Three or more significant digits.
pub(crate) fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new("receipts", &["load", "CPU µs"]);
        table.row("ten merchants", [number(1_234.0)]);
        table.note("bare loop: 160 µs");
        let expected = "## receipts\n\n\
            | load          | CPU µs |\n\
            | ------------- | -----: |\n\
            | ten merchants |   1234 |\n\n\
            bare loop: 160 µs\n\n";
        assert_eq!(table.markdown(), expected);
    }

    #[test]
    fn a_goal_is_met_at_its_limit() {
        let goal = |value| Goal { figure: "p50 ms".to_owned(), value, at_most: 100.0 };
        assert!(goal(100.0).is_met());
        assert!(!goal(100.1).is_met());
        assert!(goals_table(&[goal(101.0)]).markdown().contains("missed"));
    }
}
