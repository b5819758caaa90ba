//! Benchmarks of the running services through their front doors, compared with a bare loop in the same run.
//!
//! scripts/bench starts the services, and passes the environment of the stack.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod bare_loop;
mod benches;
mod front_doors;
mod http;
mod idle;
mod latencies;
mod load;
mod machine;
mod orders;
mod poll;
mod postgres;
mod processes;
mod rabbitmq;
mod report;
mod republish;
mod rules;
mod settings;
mod size;
mod stack;
mod variants;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

use crate::benches::selected;
use crate::report::{Goal, Report, goals_table};
use crate::size::Size;
use crate::stack::Stack;

#[derive(Parser)]
#[command(about = "Benchmarks the services of Backhaul", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run benchmarks and compare their figures with the goals
    Run(Run),
    /// The process of the bare loop
    #[command(hide = true)]
    BareLoop { receiver: String, messages: usize },
}

#[derive(Args)]
struct Run {
    /// Name of a benchmark, or all
    #[arg(default_value = "all")]
    name: String,
    /// Messages of a closed loop
    #[arg(long)]
    messages: Option<usize>,
    /// Some seconds for each part, to see that it works
    #[arg(long)]
    small: bool,
    /// Measure without a judgement of the goals
    #[arg(long)]
    unjudged: bool,
    /// File for the report
    #[arg(long)]
    report: Option<PathBuf>,
    /// Load of the machine before the build
    #[arg(long)]
    load_before: f64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(run) => run.run().await,
        Command::BareLoop { receiver, messages } => print_bare_loop(&receiver, messages).await,
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

async fn print_bare_loop(receiver: &str, messages: usize) -> anyhow::Result<ExitCode> {
    let cost = bare_loop::run(receiver, messages).await?;
    println!("{}", serde_json::to_string(&cost)?);
    Ok(ExitCode::SUCCESS)
}

impl Run {
    /// Runs benchmarks, each after a failure of another too. Succeeds if none failed and all judged goals are met.
    async fn run(&self) -> anyhow::Result<ExitCode> {
        let benches = selected(&self.name)?;
        let mut stack = Stack::connect().await?;
        let conditions = machine::describe(&stack, self.load_before).await?;
        eprint!("{conditions}");
        let size = Size::new(self.small, self.messages);
        let mut text = format!("# Benchmark report\n\n{conditions}\n");
        let mut goals = Vec::new();
        let mut has_failed = false;
        for bench in benches {
            let mut report = Report::default();
            let outcome = bench.run(&mut stack, &mut report, size).await;
            let mut printed = report.markdown();
            if let Err(error) = outcome {
                has_failed = true;
                printed += &format!("**{} failed: {error:#}**\n\n", bench.name());
            }
            println!("{printed}");
            text += &printed;
            goals.extend(report.goals);
        }
        let printed = self.compare(&goals);
        println!("{printed}");
        text += &printed;
        if let Some(file) = &self.report {
            std::fs::write(file, text)?;
            eprintln!("wrote {}", file.display());
        }
        let has_missed = !self.unjudged && !goals.iter().all(Goal::is_met);
        Ok(if has_failed || has_missed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn compare(&self, goals: &[Goal]) -> String {
        let reason = if self.small { "the size was small" } else { "the machine was busy" };
        let note =
            if self.unjudged { format!("**Not judged: {reason}.**\n") } else { String::new() };
        goals_table(goals).markdown() + &note
    }
}
