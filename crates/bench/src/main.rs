//! Benchmarks of the services, most of them compared with a baseline in the same run.
//!
//! Timings on a shared machine are noisy. A benchmark therefore alternates between the service and its
//! baseline, and measures the CPU time of each process. `bars.rs` has the limits of the figures.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod auth;
mod auth_process;
mod bars;
mod benches;
mod cpu;
mod delivery;
mod echo;
mod idle;
mod import;
mod intake;
mod intake_process;
mod load;
mod machine;
mod merchant;
mod notifier_process;
mod postgres;
mod proc_stat;
mod process;
mod rabbitmq;
mod raw_http;
mod report;
mod republish;
mod returns;
mod sandbox_process;
mod size;
mod totals;
mod variants;
mod warehouse;

use std::{path::PathBuf, process::ExitCode, time::Instant};

use clap::{Args, Parser, Subcommand};

use crate::benches::{Bench, selected};
use crate::machine::Machine;
use crate::report::{BenchResult, Judgement, markdown};
use crate::size::Size;

#[derive(Parser)]
#[command(about = "Benchmarks the services of Backhaul", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run benchmarks and compare their figures with the bars
    Run(Run),
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

#[derive(Args)]
struct Run {
    /// Name of a benchmark, or all
    #[arg(default_value = "all")]
    name: String,
    /// Run one part of the benchmark of deliveries
    #[arg(long)]
    only: Option<delivery::Part>,
    #[arg(long, default_value = "full")]
    size: Size,
    /// Print JSON objects instead of tables
    #[arg(long)]
    json: bool,
    /// File for a Markdown report
    #[arg(long)]
    report: Option<PathBuf>,
    /// Load of the machine before the build, above which bars are not judged [default: now]
    #[arg(long)]
    load_before: Option<f64>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Run(run) => return run.run().unwrap_or_else(|error| fail(&error)),
        Command::Echo => block_on(echo::serve()),
        Command::DeliveryEngine => block_on(delivery::run_engine()),
        Command::BareLoop => block_on(delivery::run_bare_loop()),
    };
    done.map_or_else(|error| fail(&error), |()| ExitCode::SUCCESS)
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}

impl Run {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let benches = selected(&self.name)?;
        anyhow::ensure!(
            self.only.is_none() || benches.iter().all(|bench| bench.name == "delivery"),
            "--only selects a part of the benchmark delivery"
        );
        let machine = block_on(Machine::read(self.load_before))?;
        let minutes: u64 = benches.iter().map(|bench| bench.minutes).sum();
        let gigabytes = benches.iter().map(|bench| bench.gigabytes).max().unwrap_or_default();
        eprint!("{}", machine.describe());
        if self.size == Size::Full {
            eprintln!("- takes up to {minutes} minutes and {gigabytes} GB of disk space");
        }
        machine.check_disk_space(self.size, gigabytes)?;
        let (judgement, started) = (self.judgement(&machine), Instant::now());
        let results: Vec<_> = benches.iter().map(|bench| self.measure(bench, judgement)).collect();
        if let Some(file) = &self.report {
            let minutes = started.elapsed().as_secs().div_ceil(60);
            let conditions = machine.describe() + &format!("- duration: {minutes} minutes\n");
            std::fs::write(file, markdown(&conditions, &results, judgement))?;
            eprintln!("wrote {}", file.display());
        }
        let is_success = results.iter().all(|result| result.is_success(judgement));
        Ok(if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn judgement(&self, machine: &Machine) -> Judgement {
        if self.size == Size::Small {
            Judgement::NotJudged("the size was small")
        } else if machine.is_busy() {
            Judgement::NotJudged("the machine was busy: the load was above the number of cores")
        } else {
            Judgement::Judged
        }
    }

    /// Runs a benchmark and prints its figures. A panic, such as that of a wait without success, fails only
    /// this benchmark.
    fn measure(&self, bench: &Bench, judgement: Judgement) -> BenchResult {
        eprintln!("==> bench {}: {}", bench.name, bench.about);
        let run = || block_on((bench.run)(self.size, self.only));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
            .unwrap_or_else(|_panic| Err(anyhow::anyhow!("panicked, see above")));
        let result = BenchResult { name: bench.name, is_complete: self.only.is_none(), outcome };
        if self.json {
            println!("{}", result.json());
        } else {
            println!("{}", result.table(judgement));
        }
        result
    }
}
