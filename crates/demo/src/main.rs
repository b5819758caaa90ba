//! Development tool that seeds a demo merchant and runs the demo scenario on a running stack.

mod poll;
mod scenario;
mod seed;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Seed a development stack and run the demo scenario
///
/// Service URLs and credentials come from environment variables, then from the
/// settings file that the backhaul command line reads too.
#[derive(Parser)]
#[command(name = "demo", version, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Seed(seed::Arguments),
    Scenario(scenario::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Seed(arguments) => seed::run(arguments).await,
        Command::Scenario(arguments) => scenario::run(arguments).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ctl::exit_code(&error),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
