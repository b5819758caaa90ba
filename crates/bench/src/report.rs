//! What was measured, and whether it is good enough.

use std::process::ExitCode;

use serde_json::{Map, Value};

/// Figures by name, and the bars they had to clear.
#[derive(Default)]
pub(crate) struct Report {
    figures: Vec<(String, f64, &'static str)>,
    bars: Vec<Bar>,
}

struct Bar {
    figure: String,
    value: f64,
    rule: String,
    cleared: bool,
}

impl Report {
    pub(crate) fn figure(&mut self, name: &str, value: f64, unit: &'static str) {
        self.figures.push((name.to_owned(), value, unit));
    }

    /// A figure that must not be above a bound.
    pub(crate) fn at_most(&mut self, name: &str, value: f64, bound: f64, unit: &'static str) {
        self.figure(name, value, unit);
        self.bars.push(Bar {
            figure: name.to_owned(),
            value,
            rule: format!("at most {bound}"),
            cleared: value <= bound,
        });
    }

    /// A figure that must not be below a bound.
    pub(crate) fn at_least(&mut self, name: &str, value: f64, bound: f64, unit: &'static str) {
        self.figure(name, value, unit);
        self.bars.push(Bar {
            figure: name.to_owned(),
            value,
            rule: format!("at least {bound}"),
            cleared: value >= bound,
        });
    }

    /// Prints everything; fails when a bar was missed.
    pub(crate) fn print(&self, json: bool) -> ExitCode {
        if json {
            let figures: Map<_, _> = self
                .figures
                .iter()
                .map(|(name, value, _)| (name.clone(), Value::from(*value)))
                .collect();
            println!("{}", Value::Object(figures));
        } else {
            let width = self.figures.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
            for (name, value, unit) in &self.figures {
                println!("{name:width$}  {value:>12.2}  {unit}");
            }
        }
        for Bar { figure, value, rule, cleared } in &self.bars {
            let verdict = if *cleared { "ok" } else { "MISSED" };
            eprintln!("{verdict}: {figure} is {value:.2}, {rule} is asked for");
        }
        if self.bars.iter().all(|bar| bar.cleared) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
