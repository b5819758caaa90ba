//! `backhaul orders`: import, validate, list, show and generate orders.

mod batch;
mod check;
mod checkpoint;
mod file;
mod generate;
mod import;
mod intake_client;
mod list;
mod message;
mod report;
mod reset;
mod unknown_fields;
mod validate;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Send orders from files to the order intake
    Import(Box<import::Arguments>),
    /// Validate orders without sending them
    Validate(validate::Arguments),
    /// Generate orders for tests
    #[command(after_help = "\
Example:
  backhaul orders generate --count 100 > orders.json")]
    Generate(generate::Arguments),
    /// List the orders of a merchant, newest first
    #[command(after_help = "\
Examples:
  backhaul orders list
  backhaul orders list --merchant acme --order 10
  backhaul orders list --email ada@shopper.example --all-merchants")]
    List(Box<list::List>),
    /// Show an order with its lines and refunds
    #[command(after_help = "\
Examples:
  backhaul orders show 1001
  backhaul orders show 1001 --merchant acme --json")]
    Show(Box<list::Show>),
    /// Make the next snapshot of an order count, if its updated_at lies in the future by mistake
    #[command(after_help = "\
Example:
  backhaul orders reset 1001 --merchant acme")]
    Reset(Box<reset::Reset>),
}

pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Import(arguments) => import::run(*arguments).await,
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::List(list) => list.run().await.map(|()| ExitCode::SUCCESS),
        Command::Show(show) => show.run().await.map(|()| ExitCode::SUCCESS),
        Command::Reset(reset) => reset.run().await.map(|()| ExitCode::SUCCESS),
    }
}
