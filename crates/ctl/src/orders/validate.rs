//! `backhaul orders validate`: validates files of orders offline.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use domain::order::OrderPolicy;

use super::check::check;
use super::file::Source;
use crate::output::print;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Files with one order per line or one JSON array, plain or gzipped; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Reject amounts that do not add up, as for a merchant with strict amounts
    #[arg(long)]
    strict_amounts: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let policy = OrderPolicy { strict_amounts: arguments.strict_amounts, ..OrderPolicy::default() };
    let (mut checked, mut rejected) = (0u64, 0u64);
    for file in &arguments.files {
        let (orders, _) = Source::from(file.as_str()).open().with_context(|| file.clone())?;
        for order in orders {
            let order = order.with_context(|| file.clone())?;
            checked += 1;
            let Err(errors) = check(&order.bytes, policy) else { continue };
            rejected += 1;
            for error in &errors {
                print(&format!("{file}:{}: {error}\n", order.line))?;
            }
        }
    }
    print(&format!("{checked} orders checked, {rejected} would be rejected\n"))?;
    Ok(if rejected == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
