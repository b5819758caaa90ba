//! The `backhaul` command line for merchants' engineers and operators.
//!
//! The modules that call the services are public for the `demo` crate.

mod audit;
mod backlog;
mod clients;
mod completions;
mod connection;
mod deliveries;
mod delivery_services;
mod discrepancies;
mod endpoints;
mod events;
mod exchange;
mod labels;
mod listen;
mod man_pages;
mod merchants;
mod orders;
mod people;
mod policy;
mod portal;
mod replays;
mod returns;
mod sessions;
mod shoppers;
mod short_id;
mod status;
mod time_input;
mod token;
mod trigger;
mod verify;
mod warehouse;

pub mod api_client;
pub mod api_error;
pub mod oauth;
pub mod output;
pub mod service_urls;
pub mod settings;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::connection::{MerchantCommand, OperatorCommand};

/// The Backhaul command line
///
/// Service URLs and credentials come from flags, then from environment variables, then from a settings
/// file. $BACKHAUL_SETTINGS names that file; the default is .run/env of the checkout that contains the
/// current folder.
#[derive(Parser)]
#[command(name = "backhaul", version = platform::version_text(), max_term_width = 80, after_help = "\
Examples:
  backhaul status
  backhaul orders import orders.json
  backhaul deliveries list --state dead --from yesterday

Exit codes:
  0    success
  1    a service refused or did not respond, or the input is invalid
  2    wrong usage: an unknown flag, an invalid ID or time, or a missing setting
  130  interrupted with Ctrl-C

IDs of deliveries, replays and erasures can be shortened to their beginning, as
in tables.")]
struct Cli {
    /// Show whole values and all columns in tables, wider than the terminal
    #[arg(long, global = true)]
    wide: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Status(status::Arguments),
    /// Add, list, show and change merchants
    Merchant(OperatorCommand<merchants::Command>),
    /// Add, list, rotate and revoke API clients
    Client(OperatorCommand<clients::Command>),
    /// Show, preview and replace the rules of a merchant for returns, and go back to earlier ones
    Policy(OperatorCommand<policy::Command>),
    /// Manage the endpoints that receive a merchant's messages
    Endpoint(OperatorCommand<endpoints::Command>),
    /// List, show, add, change and delete the warehouses of a merchant
    Warehouse(OperatorCommand<warehouse::warehouses::Command>),
    /// Invite, list and change the people who sign in to the console
    Person(OperatorCommand<people::Command>),
    /// List and end the sessions of a person at the console
    Session(OperatorCommand<sessions::Command>),
    Token(token::Arguments),
    Audit(audit::Arguments),
    /// List, show, create, cancel and simulate returns
    Returns(MerchantCommand<returns::Command>),
    /// Link to the returns portal
    Portal(MerchantCommand<portal::Command>),
    /// Export or erase the personal data of a shopper
    Shopper(MerchantCommand<shoppers::Command>),
    /// List and resolve discrepancies
    Discrepancies(MerchantCommand<discrepancies::Command>),
    /// List, show, send again and cancel the requests for labels of parcels
    Labels(MerchantCommand<labels::Command>),
    /// List, show and abandon exchange orders, and look up variants
    Exchange(MerchantCommand<exchange::Command>),
    Deliveries(deliveries::Arguments),
    Replays(replays::Arguments),
    Backlog(backlog::Arguments),
    /// Publish events between the services again, show the progress, and stop it
    Events(OperatorCommand<events::Command>),
    /// List, show and register inbound ASNs
    Asn(MerchantCommand<warehouse::asns::Command>),
    /// List and show outbound shipments and their messages
    Shipment(MerchantCommand<warehouse::shipments::Command>),
    /// List units received in a warehouse
    Receipt(MerchantCommand<warehouse::receipts::Command>),
    Verify(verify::Arguments),
    Listen(listen::Arguments),
    Trigger(trigger::Arguments),
    /// Import, validate, list, show, generate and reset orders
    #[command(subcommand)]
    Orders(orders::Command),
    Completions(completions::Arguments),
    Man(man_pages::Arguments),
}

/// A usage error that clap cannot detect.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);

fn usage_error(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// An interrupt by Ctrl-C, and what goes on without this program.
#[derive(Debug, thiserror::Error)]
#[error("interrupted; {0}")]
struct Interrupted(String);

/// Parses the command line, runs the command and reports its error.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| exit_with(&error));
    output::Layout::set(cli.wide);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        let result = runtime.block_on(run(cli.command));
        // A blocked read of standard input must not keep an interrupted program alive.
        runtime.shutdown_background();
        result
    });
    result.unwrap_or_else(|error| exit_code(&error))
}

/// Prints help or a usage error of clap, whose lines fit the terminal, and ends the program.
fn exit_with(error: &clap::Error) -> ! {
    if !error.use_stderr() {
        error.exit();
    }
    output::message(&output::wrapped_message(error.to_string().trim_end()));
    std::process::exit(error.exit_code())
}

/// Prints an error and returns the exit code for it.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    output::message(&output::wrapped_message(&format!("error: {}", output::causes(error))));
    if error.is::<UsageError>() || error.is::<settings::MissingSetting>() {
        ExitCode::from(2)
    } else if error.is::<Interrupted>() {
        ExitCode::from(130)
    } else {
        ExitCode::FAILURE
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Completions(arguments) => completions::run(&arguments, Cli::command())?,
        Command::Man(arguments) => man_pages::run(&arguments, Cli::command())?,
        Command::Status(arguments) => return status::run(arguments).await,
        Command::Merchant(arguments) => merchants::run(arguments).await?,
        Command::Client(arguments) => clients::run(arguments).await?,
        Command::Policy(arguments) => policy::run(arguments).await?,
        Command::Warehouse(arguments) => warehouse::warehouses::run(arguments).await?,
        Command::Person(arguments) => people::run(arguments).await?,
        Command::Session(arguments) => sessions::run(arguments).await?,
        Command::Token(arguments) => token::run(arguments).await?,
        Command::Audit(arguments) => audit::run(arguments).await?,
        Command::Returns(arguments) => returns::run(arguments).await?,
        Command::Portal(arguments) => portal::run(arguments).await?,
        Command::Shopper(arguments) => shoppers::run(arguments).await?,
        Command::Discrepancies(arguments) => discrepancies::run(arguments).await?,
        Command::Labels(arguments) => labels::run(arguments).await?,
        Command::Exchange(arguments) => exchange::run(arguments).await?,
        Command::Deliveries(arguments) => deliveries::run(arguments).await?,
        Command::Replays(arguments) => replays::run(arguments).await?,
        Command::Backlog(arguments) => backlog::run(arguments).await?,
        Command::Events(arguments) => events::run(arguments).await?,
        Command::Asn(arguments) => warehouse::asns::run(arguments).await?,
        Command::Shipment(arguments) => warehouse::shipments::run(arguments).await?,
        Command::Receipt(arguments) => warehouse::receipts::run(arguments).await?,
        Command::Endpoint(arguments) => return endpoints::run(arguments).await,
        Command::Listen(arguments) => listen::run(arguments).await?,
        Command::Trigger(arguments) => return trigger::run(arguments).await,
        Command::Verify(arguments) => return verify::run(&arguments),
        Command::Orders(command) => return orders::run(command).await,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
