//! `backhaul orders generate`: sample orders.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use domain::order::sample::{Orders, document};
use platform::Clock;

use crate::output;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Number of orders
    #[arg(long, value_name = "N")]
    count: usize,
    /// Seed; the same seed gives the same orders except for their dates [default: random]
    #[arg(long)]
    seed: Option<u64>,
    /// Write one JSON array instead of one order per line
    #[arg(long)]
    array: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let now = Clock::system().now();
    let seed = arguments.seed.unwrap_or_else(|| now.timestamp_micros().unsigned_abs());
    let orders = Orders::new(seed, now).take(arguments.count);
    output::write_own(|out| write(out, orders, arguments.array))?;
    Ok(ExitCode::SUCCESS)
}

fn write(
    out: &mut dyn Write,
    orders: impl Iterator<Item = domain::order::Order>,
    array: bool,
) -> io::Result<()> {
    let (start, separator, end) = if array { ("[\n", ",\n", "\n]\n") } else { ("", "\n", "\n") };
    out.write_all(start.as_bytes())?;
    for (index, order) in orders.enumerate() {
        if index > 0 {
            out.write_all(separator.as_bytes())?;
        }
        serde_json::to_writer(&mut *out, &document(&order))?;
    }
    out.write_all(end.as_bytes())
}
