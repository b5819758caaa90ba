//! The `backhaul` command line: what merchants' engineers and operators do by hand.
//!
//! A command ends with 0 when it did what was asked, 1 when it found something wrong with its
//! input or could not go on, 2 when it was called wrongly, and 130 when it was interrupted.

mod audit;
mod clients;
mod deliverers;
mod deliveries;
mod demo;
mod endpoints;
mod exchange;
mod merchants;
mod operator;
mod orders;
mod output;
mod party;
mod places;
mod refusal;
mod returns;
mod settings;
mod token;
mod tokens;
mod tour;
mod verify;
mod warehouse;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The Backhaul command line
///
/// Addresses and credentials come from flags, else from the environment, else from the file that
/// $BACKHAUL_SETTINGS names, which is the .run/env of the checkout around the current folder unless
/// it is set.
#[derive(Parser)]
#[command(name = "backhaul", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Merchant(merchants::Arguments),
    Client(clients::Arguments),
    Endpoint(endpoints::Arguments),
    Token(token::Arguments),
    Audit(audit::Arguments),
    Returns(returns::Arguments),
    Exchange(exchange::Arguments),
    Deliveries(deliveries::Arguments),
    Asn(warehouse::asns::Arguments),
    Shipment(warehouse::shipments::Arguments),
    Receipt(warehouse::receipts::Arguments),
    Verify(verify::Arguments),
    Demo(demo::Arguments),
    Tour(tour::Arguments),
    /// Import, check and make up orders
    #[command(subcommand)]
    Orders(orders::Command),
}

/// A command that was called wrongly in a way only the command itself can tell.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

/// The whole of the program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        let result = runtime.block_on(run(cli.command));
        // A blocked read of standard input must not keep an interrupted program alive.
        runtime.shutdown_background();
        result
    });
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        let misused = error.is::<Usage>() || error.is::<settings::Missing>();
        if misused { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Merchant(arguments) => merchants::run(arguments).await?,
        Command::Client(arguments) => clients::run(arguments).await?,
        Command::Token(arguments) => token::run(arguments).await?,
        Command::Audit(arguments) => audit::run(arguments).await?,
        Command::Returns(arguments) => returns::run(arguments).await?,
        Command::Exchange(arguments) => exchange::run(arguments).await?,
        Command::Deliveries(arguments) => deliveries::run(arguments).await?,
        Command::Demo(arguments) => demo::run(arguments).await?,
        Command::Tour(arguments) => tour::run(arguments).await?,
        Command::Asn(arguments) => warehouse::asns::run(arguments).await?,
        Command::Shipment(arguments) => warehouse::shipments::run(arguments).await?,
        Command::Receipt(arguments) => warehouse::receipts::run(arguments).await?,
        Command::Endpoint(arguments) => return endpoints::run(arguments).await,
        Command::Verify(arguments) => return verify::run(&arguments),
        Command::Orders(command) => return orders::run(command).await,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
