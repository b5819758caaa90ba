//! What the services cost, measured beside something plain in the same run.
//!
//! Timings on a shared machine are noise; so a bench alternates between the thing and its
//! yardstick, counts the CPU time of each process, and judges the ratio.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod auth;
mod delivery;
mod echo;
mod import;
mod intake;
mod load;
mod merchant;
mod orders;
mod postgres;
mod process;
mod report;
mod returns;
mod turns;
mod units;
mod variants;
mod warehouse;
mod wire;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use report::Report;

#[derive(Parser)]
#[command(about = "Measures the services of Backhaul", version)]
struct Cli {
    /// One JSON object instead of a table.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Print the names of the benches
    List,
    /// Token grants beside a bare JSON echo
    Auth,
    /// One order a message beside pgbench storing the same rows
    Intake,
    /// A hundred orders a message beside one
    Import,
    /// The webhook engine beside a bare loop of consume, post and acknowledge
    Delivery {
        /// One part of it
        #[arg(long)]
        only: Option<delivery::Part>,
    },
    /// Orders put on the ledger and returns started, beside the intake
    Returns,
    /// Variants from memory and from the merchant, beside the bare call to that merchant
    Variants,
    /// Units received singly and by the hundred beside pgbench inserting the same rows
    Warehouse,
    /// The engine's own process
    #[command(hide = true)]
    Deliverer,
    /// The yardstick: consume, post, acknowledge
    #[command(hide = true)]
    Bare,
    /// The yardstick: a server that answers with what it was sent
    #[command(hide = true)]
    Echo,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    let measured = runtime.block_on(async {
        match cli.bench {
            Bench::List => {
                let names =
                    ["auth", "intake", "import", "returns", "variants", "warehouse", "delivery"];
                names.iter().for_each(|name| println!("{name}"));
                Ok(Report::default())
            }
            Bench::Echo => echo::serve().await.map(|()| Report::default()),
            Bench::Auth => auth::run().await,
            Bench::Intake => intake::run().await,
            Bench::Import => import::run().await,
            Bench::Delivery { only } => delivery::run(only).await,
            Bench::Returns => returns::run().await,
            Bench::Variants => variants::run().await,
            Bench::Warehouse => warehouse::run().await,
            Bench::Deliverer => delivery::serve().await.map(|()| Report::default()),
            Bench::Bare => delivery::bare().await.map(|()| Report::default()),
        }
    });
    match measured {
        Ok(report) => report.print(cli.json),
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}
