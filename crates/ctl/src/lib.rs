//! The `backhaul` command line: what merchants' engineers and operators do by hand.
//!
//! A command ends with 0 when it did what was asked, 1 when it found something wrong with its
//! input or could not go on, 2 when it was called wrongly, and 130 when it was interrupted.

mod orders;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "backhaul", version, about = "The Backhaul command line")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Import, check and make up orders
    #[command(subcommand)]
    Orders(orders::Command),
}

/// The whole of the program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        let result = runtime.block_on(async {
            match cli.command {
                Command::Orders(command) => orders::run(command).await,
            }
        });
        // A blocked read of standard input must not keep an interrupted program alive.
        runtime.shutdown_background();
        result
    });
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
