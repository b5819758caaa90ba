//! The `backhaul` command line for merchants' engineers and operators.
//!
//! Exit codes: 0 for success, 1 for invalid input or a failed request, 2 for wrong usage, 130 after
//! an interrupt. The modules that call the services are public for the `demo` crate.

mod audit;
mod backlog;
mod clients;
mod connection;
mod deliveries;
mod delivery_services;
mod discrepancies;
mod endpoints;
mod exchange;
mod merchants;
mod orders;
mod people;
mod replays;
mod returns;
mod sessions;
mod token;
mod verify;
mod warehouse;

pub mod api_client;
pub mod api_error;
pub mod oauth;
pub mod output;
pub mod service_urls;
pub mod settings;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The Backhaul command line
///
/// Service URLs and credentials come from flags, then from environment variables,
/// then from a settings file. $BACKHAUL_SETTINGS names that file; the default is
/// .run/env of the checkout that contains the current folder.
#[derive(Parser)]
#[command(name = "backhaul", version, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Merchant(merchants::Arguments),
    Client(clients::Arguments),
    Endpoint(endpoints::Arguments),
    Person(people::Arguments),
    Session(sessions::Arguments),
    Token(token::Arguments),
    Audit(audit::Arguments),
    Returns(returns::Arguments),
    Discrepancies(discrepancies::Arguments),
    Exchange(exchange::Arguments),
    Deliveries(deliveries::Arguments),
    Replays(replays::Arguments),
    Backlog(backlog::Arguments),
    Asn(warehouse::asns::Arguments),
    Shipment(warehouse::shipments::Arguments),
    Receipt(warehouse::receipts::Arguments),
    Verify(verify::Arguments),
    /// Import, validate and generate orders
    #[command(subcommand)]
    Orders(orders::Command),
}

/// A usage error that clap cannot detect.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);

fn usage_error(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// Parses the command line, runs the command and reports its error.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        let result = runtime.block_on(run(cli.command));
        // A blocked read of standard input must not keep an interrupted program alive.
        runtime.shutdown_background();
        result
    });
    result.unwrap_or_else(|error| exit_code(&error))
}

/// Prints an error and returns the exit code for it.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    let is_usage = error.is::<UsageError>() || error.is::<settings::MissingSetting>();
    if is_usage { ExitCode::from(2) } else { ExitCode::FAILURE }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Merchant(arguments) => merchants::run(arguments).await?,
        Command::Client(arguments) => clients::run(arguments).await?,
        Command::Person(arguments) => people::run(arguments).await?,
        Command::Session(arguments) => sessions::run(arguments).await?,
        Command::Token(arguments) => token::run(arguments).await?,
        Command::Audit(arguments) => audit::run(arguments).await?,
        Command::Returns(arguments) => returns::run(arguments).await?,
        Command::Discrepancies(arguments) => discrepancies::run(arguments).await?,
        Command::Exchange(arguments) => exchange::run(arguments).await?,
        Command::Deliveries(arguments) => deliveries::run(arguments).await?,
        Command::Replays(arguments) => replays::run(arguments).await?,
        Command::Backlog(arguments) => backlog::run(arguments).await?,
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
