//! Figures, their bars, and the one table in which they are printed.

use serde_json::{Map, Value};

use crate::bars::{BARS, Bar};
use crate::load::Round;

const HEADINGS: [&str; 6] = ["measure", "figure", "unit", "bar", "ratio", "result"];

/// The figures of one benchmark by name.
#[derive(Default)]
pub(crate) struct Report {
    figures: Vec<Figure>,
}

struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
}

impl Report {
    pub(crate) fn figure(&mut self, name: &str, value: f64, unit: &'static str) {
        self.figures.push(Figure { name: name.to_owned(), value, unit });
    }

    /// Median and 99th percentile, as `<name>_p50` and `<name>_p99`.
    pub(crate) fn latencies(&mut self, name: &str, round: &Round) {
        for (suffix, quantile) in [("p50", 0.50), ("p99", 0.99)] {
            self.figure(&format!("{name}_{suffix}"), round.millis(quantile), "ms");
        }
    }
}

/// One benchmark that ran.
pub(crate) struct BenchResult {
    pub(crate) name: &'static str,
    /// Whether all parts ran, so that each bar must have a figure.
    pub(crate) is_complete: bool,
    pub(crate) outcome: anyhow::Result<Report>,
}

/// Whether bars are judged, and otherwise the reason.
#[derive(Clone, Copy)]
pub(crate) enum Judgement {
    Judged,
    NotJudged(&'static str),
}

impl BenchResult {
    fn figures(&self) -> &[Figure] {
        self.outcome.as_ref().map_or(&[], |report| &report.figures)
    }

    /// The names of bars that a complete run did not measure.
    fn unmeasured(&self) -> impl Iterator<Item = &'static str> {
        let (name, figures) = (self.name, self.figures());
        let is_expected = self.is_complete && self.outcome.is_ok();
        BARS.iter().filter_map(move |(bar, _)| {
            let figure = bar.strip_prefix(name)?.strip_prefix('.')?;
            let is_measured = figures.iter().any(|measured| measured.name == figure);
            (is_expected && !is_measured).then_some(*bar)
        })
    }

    fn rows(&self, judgement: Judgement) -> Vec<[String; 6]> {
        let unmeasured = self
            .unmeasured()
            .map(|bar| [bar, "not measured", "", "", "", "missed"].map(str::to_owned));
        self.figures()
            .iter()
            .map(|figure| figure.row(self.name, judgement))
            .chain(unmeasured)
            .collect()
    }

    /// Whether the benchmark ran, and met its bars if they are judged.
    pub(crate) fn is_success(&self, judgement: Judgement) -> bool {
        self.outcome.is_ok() && !self.rows(judgement).iter().any(|[.., result]| result == "missed")
    }

    /// The figures as a table. An error replaces them.
    pub(crate) fn table(&self, judgement: Judgement) -> String {
        match &self.outcome {
            Ok(_) => table(&self.rows(judgement)),
            Err(error) => format!("{} failed: {error:#}\n", self.name),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let figure = |figure: &Figure| (figure.full_name(self.name), Value::from(figure.value));
        Value::Object(self.figures().iter().map(figure).collect::<Map<_, _>>())
    }
}

impl Figure {
    fn full_name(&self, bench: &str) -> String {
        format!("{bench}.{}", self.name)
    }

    fn row(&self, bench: &str, judgement: Judgement) -> [String; 6] {
        let name = self.full_name(bench);
        let (bar, ratio, result) = match Bar::of(&name) {
            None => (String::new(), String::new(), ""),
            Some(bar) => {
                let word = if matches!(bar, Bar::AtMost(_)) { "at most" } else { "at least" };
                let result = match judgement {
                    Judgement::NotJudged(_) => "not judged",
                    Judgement::Judged if bar.is_met(self.value) => "met",
                    Judgement::Judged => "missed",
                };
                let limit = bar.limit();
                (format!("{word} {}", number(limit)), number(self.value / limit), result)
            }
        };
        [name, number(self.value), self.unit.to_owned(), bar, ratio, result.to_owned()]
    }
}

/// The Markdown report of a whole run: its conditions, the figures with bars, and the others.
pub(crate) fn markdown(conditions: &str, results: &[BenchResult], judgement: Judgement) -> String {
    let rows: Vec<_> = results.iter().flat_map(|result| result.rows(judgement)).collect();
    let (with_bar, others): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|[.., result]| !result.is_empty());
    let with = |result| with_bar.iter().filter(|row| row[5] == result).count();
    let mut text = format!("# Benchmark report\n\n{conditions}\n");
    text += &match judgement {
        Judgement::Judged => {
            format!("{} bars are met, {} are missed.\n", with("met"), with("missed"))
        }
        Judgement::NotJudged(reason) => format!("**Not judged: {reason}.**\n"),
    };
    for result in results.iter().filter(|result| result.outcome.is_err()) {
        text += &format!("- {}", result.table(judgement));
    }
    text + "\n## Bars\n\nThe ratio is the figure divided by the bar.\n\n"
        + &table(&with_bar)
        + "\n## Other figures\n\n"
        + &table(&others)
}

/// A Markdown table with aligned columns, which is also readable in a terminal.
pub(crate) fn table(rows: &[[String; 6]]) -> String {
    let headings = HEADINGS.map(str::to_owned);
    let rows = || std::iter::once(&headings).chain(rows);
    let widths: [usize; 6] = std::array::from_fn(|column| {
        rows().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0)
    });
    let line = |cells: [String; 6]| format!("| {} |\n", cells.join(" | "));
    let mut lines = rows().map(|row| {
        line(std::array::from_fn(|column| pad(row.get(column), widths.get(column), column)))
    });
    let first = lines.next().unwrap_or_default();
    let separator = line(widths.map(|width| "-".repeat(width)));
    first + &separator + &lines.collect::<String>()
}

/// Numbers are aligned to the right.
fn pad(cell: Option<&String>, width: Option<&usize>, column: usize) -> String {
    let (cell, width) = (cell.map_or("", String::as_str), width.copied().unwrap_or(0));
    if matches!(column, 1 | 4) { format!("{cell:>width$}") } else { format!("{cell:width$}") }
}

/// Three or more significant digits.
fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(figures: &[(&str, f64)], is_complete: bool) -> BenchResult {
        let mut report = Report::default();
        figures.iter().for_each(|(name, value)| report.figure(name, *value, "CPU-us"));
        BenchResult { name: "auth", is_complete, outcome: Ok(report) }
    }

    #[test]
    fn a_figure_is_printed_with_its_bar_and_the_ratio() {
        let result =
            result(&[("grant.cpu", 65.0), ("grant.cpu_in_echoes", 3.0), ("echo.cpu", 9.5)], true);
        let rows = result.rows(Judgement::Judged);
        assert_eq!(
            rows[0],
            ["auth.grant.cpu", "65.00", "CPU-us", "at most 50.00", "1.30", "missed"]
        );
        assert_eq!(rows[1][5], "met");
        assert_eq!(rows[2], ["auth.echo.cpu", "9.50", "CPU-us", "", "", ""]);
        assert!(!result.is_success(Judgement::Judged));
        assert!(result.table(Judgement::Judged).lines().all(|line| line.starts_with("| ")));
    }

    #[test]
    fn a_bar_without_a_figure_is_missed_unless_only_a_part_ran() {
        let measured = [("grant.cpu", 40.0)];
        assert!(!result(&measured, true).is_success(Judgement::Judged));
        assert!(result(&measured, false).is_success(Judgement::Judged));
    }

    #[test]
    fn nothing_is_missed_on_a_busy_machine() {
        let busy = Judgement::NotJudged("the machine was busy");
        let results = [result(&[("grant.cpu", 65.0), ("grant.cpu_in_echoes", 3.0)], true)];
        assert!(results[0].is_success(busy));
        let report = markdown("- cores: 2\n", &results, busy);
        assert!(report.contains("**Not judged: the machine was busy.**"), "{report}");
        assert!(report.contains("not judged"), "{report}");
    }

    #[test]
    fn a_failed_benchmark_is_named_in_the_report() {
        let outcome = Err(anyhow::anyhow!("no server"));
        let failed = BenchResult { name: "auth", is_complete: true, outcome };
        assert!(!failed.is_success(Judgement::Judged));
        assert!(markdown("", &[failed], Judgement::Judged).contains("- auth failed: no server"));
    }
}
