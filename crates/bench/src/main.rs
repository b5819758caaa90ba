//! Benchmarks of the services, each compared with a baseline in the same run.
//!
//! Timings on a shared machine are noisy. A benchmark therefore alternates between the service and its
//! baseline, measures the CPU time of each process, and checks the ratio.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod auth;
mod delivery;
mod echo;
mod import;
mod intake;
mod intake_process;
mod load;
mod merchant;
mod notifier_process;
mod postgres;
mod process;
mod raw_http;
mod report;
mod returns;
mod totals;
mod variants;
mod warehouse;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use report::Report;

#[derive(Parser)]
#[command(about = "Benchmarks the services of Backhaul", version)]
struct Cli {
    /// Print a JSON object instead of a table
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Print the names of the benchmarks
    List,
    /// Token requests, compared with a JSON echo server
    Auth,
    /// Messages of one order, compared with pgbench inserting the same rows
    Intake,
    /// Messages of a hundred orders, compared with messages of one
    Import,
    /// The delivery engine, compared with a loop that consumes, posts and acknowledges
    Delivery {
        /// Run one part
        #[arg(long)]
        only: Option<delivery::Part>,
    },
    /// Projection of orders and creation of returns
    Returns,
    /// Variant lookups with and without the cache, compared with requests to the merchant
    Variants,
    /// Receipts of one and of a hundred units, compared with pgbench inserting the same rows
    Warehouse,
    /// The process of the delivery engine
    #[command(hide = true)]
    DeliveryEngine,
    /// The baseline of deliveries: consume, post, acknowledge
    #[command(hide = true)]
    BareLoop,
    /// The baseline of token requests: a JSON echo server
    #[command(hide = true)]
    Echo,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    let report = runtime.block_on(async {
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
            Bench::DeliveryEngine => delivery::run_engine().await.map(|()| Report::default()),
            Bench::BareLoop => delivery::run_bare_loop().await.map(|()| Report::default()),
        }
    });
    match report {
        Ok(report) => report.print(cli.json),
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}
