//! Development tool that seeds a demo merchant and walks a return through a running stack.

mod poll;
mod seed;
mod tour;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Seed and tour a development stack
///
/// Service URLs and credentials come from environment variables, then from the settings file that
/// the backhaul command line reads too.
#[derive(Parser)]
#[command(name = "demo", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Seed(seed::Arguments),
    Tour(tour::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Seed(arguments) => seed::run(arguments).await,
        Command::Tour(arguments) => tour::run(arguments).await,
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
