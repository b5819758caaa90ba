//! The figures of a benchmark and their limits.

use std::process::ExitCode;

use serde_json::{Map, Value};

/// Figures by name, and the limits that they must meet.
#[derive(Default)]
pub(crate) struct Report {
    figures: Vec<(String, f64, &'static str)>,
    checks: Vec<Check>,
}

struct Check {
    figure: String,
    value: f64,
    limit: String,
    passed: bool,
}

impl Report {
    pub(crate) fn figure(&mut self, name: &str, value: f64, unit: &'static str) {
        self.figures.push((name.to_owned(), value, unit));
    }

    /// A figure with an upper limit.
    pub(crate) fn at_most(&mut self, name: &str, value: f64, limit: f64, unit: &'static str) {
        self.figure(name, value, unit);
        self.checks.push(Check {
            figure: name.to_owned(),
            value,
            limit: format!("at most {limit}"),
            passed: value <= limit,
        });
    }

    /// A figure with a lower limit.
    pub(crate) fn at_least(&mut self, name: &str, value: f64, limit: f64, unit: &'static str) {
        self.figure(name, value, unit);
        self.checks.push(Check {
            figure: name.to_owned(),
            value,
            limit: format!("at least {limit}"),
            passed: value >= limit,
        });
    }

    /// Prints the figures and the checks. The exit code is a failure if a check failed.
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
        for Check { figure, value, limit, passed } in &self.checks {
            let result = if *passed { "ok" } else { "FAILED" };
            eprintln!("{result}: {figure} is {value:.2}, must be {limit}");
        }
        if self.checks.iter().all(|check| check.passed) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
