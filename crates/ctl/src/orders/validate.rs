//! `backhaul orders validate`: checks files without sending anything.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use domain::order::OrderPolicy;

use super::check::check;
use super::file::Place;
use crate::output::print;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Files with one order a line or one JSON array, also gzipped; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Refuse sums that do not add up, for merchants whose intake does
    #[arg(long)]
    strict_amounts: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let policy = OrderPolicy { strict_amounts: arguments.strict_amounts, ..OrderPolicy::default() };
    let (mut orders, mut rejected) = (0u64, 0u64);
    for file in &arguments.files {
        let (entries, _) = Place::from(file.as_str()).open().with_context(|| file.clone())?;
        for entry in entries {
            let entry = entry.with_context(|| file.clone())?;
            orders += 1;
            let Err(errors) = check(&entry.bytes, policy) else { continue };
            rejected += 1;
            for error in &errors {
                print(&format!("{file}:{}: {error}\n", entry.line))?;
            }
        }
    }
    print(&format!("{orders} orders checked, {rejected} would be rejected\n"))?;
    Ok(if rejected == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
