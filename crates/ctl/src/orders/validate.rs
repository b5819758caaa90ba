//! `backhaul orders validate`: validates files of orders offline.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use domain::json::FieldError;
use domain::order::OrderPolicy;
use domain::printable::one_line;
use serde_json::{Value, json};

use super::check::{CheckedOrder, check, describe_error, describe_warning};
use super::file::Source;
use crate::output::{Format, count, print};

#[derive(Args)]
#[command(after_help = "\
Examples:
  backhaul orders validate orders.json
  backhaul orders validate history.ndjson.gz --strict-amounts --json")]
pub(crate) struct Arguments {
    /// Files with a message, an array of orders, or one order after the other, as JSON, plain
    /// or gzipped; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Reject amounts that do not add up, as for a merchant with strict amounts
    #[arg(long)]
    strict_amounts: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The result for all files.
#[derive(Default)]
struct Summary {
    orders: u64,
    rejected: u64,
    errors: Vec<Value>,
    warnings: Vec<Value>,
    warning_count: u64,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let policy = OrderPolicy { strict_amounts: arguments.strict_amounts, ..OrderPolicy::default() };
    let format = Format::new(arguments.json);
    let mut summary = Summary::default();
    for file in &arguments.files {
        let (orders, _) = Source::from(file.as_str()).open().with_context(|| one_line(file))?;
        for order in orders {
            let order = order.with_context(|| one_line(file))?;
            let checked = check(&order, policy);
            summary.add(&format!("{}:{}", one_line(file), checked.line), &checked, format)?;
        }
    }
    let is_valid = summary.rejected == 0;
    summary.print(format)?;
    Ok(if is_valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Summary {
    /// Counts an order, and prints or collects its errors and warnings.
    fn add(&mut self, place: &str, checked: &CheckedOrder, format: Format) -> anyhow::Result<()> {
        self.orders += 1;
        self.rejected += u64::from(!checked.errors.is_empty());
        self.warning_count += u64::try_from(checked.warnings.len()).unwrap_or(u64::MAX);
        match format {
            Format::Json => {
                let entry = |error: &FieldError| {
                    json!({ "place": place, "order": checked.identifier, "field": error.field,
                            "code": error.code, "detail": error.detail })
                };
                self.errors.extend(checked.errors.iter().map(entry));
                self.warnings.extend(checked.warnings.iter().map(entry));
            }
            Format::Text => {
                let order = &checked.identifier;
                for error in &checked.errors {
                    print(&format!("{place}: {}\n", describe_error(order, error)))?;
                }
                for warning in &checked.warnings {
                    print(&format!("{place}: {}\n", describe_warning(order, warning)))?;
                }
            }
        }
        Ok(())
    }

    fn print(self, format: Format) -> anyhow::Result<()> {
        let Self { orders, rejected, errors, warnings, warning_count } = self;
        let summary = json!({
            "orders": orders, "rejected": rejected, "errors": errors, "warnings": warnings,
        });
        format.print(&summary, |_| {
            let warnings = match warning_count {
                0 => String::new(),
                number => format!(", {}", count(number, "warning")),
            };
            format!("{} checked, {rejected} would be rejected{warnings}\n", count(orders, "order"))
        })
    }
}
