//! `backhaul orders`: the six-month import, and what goes with it.

mod batch;
mod check;
mod file;
mod gateway;
mod generate;
mod import;
mod journal;
mod report;
mod samples;
mod validate;

use std::process::ExitCode;

use clap::Subcommand;

pub(crate) use samples::publish_samples;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Send orders from files to the order intake
    Import(Box<import::Arguments>),
    /// Check orders without sending them
    Validate(validate::Arguments),
    /// Make up orders to test with
    Generate(generate::Arguments),
}

pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Import(arguments) => import::run(*arguments).await,
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
    }
}
