//! `backhaul orders`: import, validate and generate orders.

mod batch;
mod check;
mod checkpoint;
mod file;
mod generate;
mod import;
mod intake_client;
mod message;
mod report;
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
    Generate(generate::Arguments),
}

pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Import(arguments) => import::run(*arguments).await,
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
    }
}
