//! `backhaul orders import`: the order history of a new merchant.
//!
//! Orders are validated before they are sent, so that an invalid order does not cause its batch to be
//! rejected. If the order intake rejects some orders, the others are sent again. Every order of the
//! file is stored or listed in the report.
//!
//! See docs/decisions/order-import.md.

mod progress;
mod send;

use std::collections::BTreeMap;
use std::path::{self, Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, value_parser};
use domain::order::MAX_ORDERS;
use domain::printable::one_line;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::sync::watch;

use self::progress::{Summary, print_summary, progress_bar, update_progress};
use self::send::FinishedBatch;
use super::batch::Batches;
use super::checkpoint::Checkpoint;
use super::file::Source;
use super::intake_client::{IntakeArgs, IntakeClient};
use super::report::Report;
use crate::output::{Format, count, file_name, message};
use crate::settings::Settings;
use crate::usage_error;

#[derive(Args)]
#[command(after_help = "\
Examples:
  backhaul orders import orders.json
  backhaul orders import history.ndjson.gz --parallel 8 --report rejected.csv")]
pub(crate) struct Arguments {
    /// Files with a message, an array of orders, or one order after the other, as JSON, plain
    /// or gzipped; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    intake: IntakeArgs,
    /// Number of orders in one message
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(1..=500))]
    batch: u64,
    /// Number of messages in flight
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u64).range(1..=64))]
    parallel: u64,
    /// CSV file for rejected orders, which replaces an earlier report [default: FILE.rejected.csv]
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { files, intake, batch, parallel, report, json } = arguments;
    let importer = Importer {
        intake: IntakeClient::from_arguments(&intake, &Settings::load()?)?,
        batch: usize::try_from(batch).unwrap_or(MAX_ORDERS),
        parallel: usize::try_from(parallel).unwrap_or(1),
        report,
        format: Format::new(json),
    };
    Ok(match importer.import_all(&files, watch_for_interrupt()).await? {
        None => ExitCode::from(130),
        Some(0) => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
    })
}

/// Becomes true at the first Ctrl-C. The second one exits the program.
fn watch_for_interrupt() -> watch::Receiver<bool> {
    let (interrupt, interrupted) = watch::channel(false);
    #[expect(clippy::disallowed_methods, reason = "it waits for a signal until the program exits")]
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if interrupt.send_replace(true) {
                std::process::exit(130);
            }
        }
    });
    interrupted
}

struct Importer {
    intake: IntakeClient,
    batch: usize,
    parallel: usize,
    report: Option<PathBuf>,
    format: Format,
}

impl Importer {
    /// Imports the files in sequence. Returns the number of rejected orders, or nothing after an
    /// interrupt.
    async fn import_all(
        &self,
        files: &[String],
        interrupted: watch::Receiver<bool>,
    ) -> anyhow::Result<Option<u64>> {
        let sources: Vec<_> = files.iter().map(|file| Source::from(file.as_str())).collect();
        self.prepare_reports(&sources)?;
        let mut rejected = 0;
        let mut results = Vec::new();
        for (file, source) in files.iter().zip(&sources) {
            let summary = self.import(source, file, interrupted.clone()).await;
            let summary = summary
                .with_context(|| format!("{} is not imported completely", one_line(file)))?;
            rejected += summary.rejected;
            results.push(json!({ "file": file, "result": summary }));
            if *interrupted.borrow() {
                return Ok(None);
            }
        }
        sources.iter().filter_map(Source::path).try_for_each(Checkpoint::delete)?;
        // The text of the result was printed file by file.
        self.format.print(&json!({ "files": results }), |_| String::new())?;
        Ok(Some(rejected))
    }

    /// Deletes the reports of earlier runs and rejects a path to any other file. A resumed import
    /// keeps the rows that its checkpoint counts, and must use the same report. If several files share
    /// a report and one of them is resumed, only the rows of the others are removed.
    fn prepare_reports(&self, sources: &[Source]) -> anyhow::Result<()> {
        let mut reports: BTreeMap<PathBuf, (bool, Vec<_>)> = BTreeMap::new();
        for source in sources {
            let path = self.report_path(source);
            let checkpoint = Checkpoint::open(source.path(), self.intake.target())?;
            let earlier = checkpoint.earlier.report.as_deref();
            if let Some(earlier) = earlier.filter(|earlier| !is_same_file(earlier, &path)) {
                return Err(different_report(source, earlier));
            }
            let (is_resumed, rows) = reports.entry(path).or_default();
            *is_resumed |= checkpoint.earlier.done > 0;
            rows.push((source.name(), checkpoint.earlier.rows));
        }
        for path in reports.keys() {
            let name = file_name(path);
            if sources.iter().filter_map(Source::path).any(|file| is_same_file(file, path)) {
                return Err(usage_error(format!("{name} cannot be both input and report")));
            }
            if !Report::is_allowed_at(path)? {
                return Err(usage_error(format!(
                    "{name} is not a report of rejected orders and is not overwritten"
                )));
            }
        }
        for (path, (is_resumed, rows)) in &reports {
            let prepared = match is_resumed {
                true => Report::truncate(path, rows),
                false => Report::delete(path),
            };
            prepared.with_context(|| format!("cannot write {}", file_name(path)))?;
        }
        Ok(())
    }

    async fn import(
        &self,
        source: &Source,
        name: &str,
        interrupted: watch::Receiver<bool>,
    ) -> anyhow::Result<Summary> {
        let mut checkpoint = Checkpoint::open(source.path(), self.intake.target())?;
        let resumed_at = checkpoint.earlier.done;
        let mut report = Report::new(self.report_path(source), name);
        let name = &one_line(name);
        let (orders, bytes_read) = source.open()?;
        let bar = progress_bar(source, name);
        if resumed_at > 0 {
            bar.println(format!("{name}: resuming after {}", count(resumed_at, "order")));
        }
        let batches = Batches::new(orders, self.batch, resumed_at);
        let mut finished = self.send_all(batches, interrupted.clone());
        let mut summary = Summary::default();
        while let Some(batch) = finished.next().await {
            let FinishedBatch { number, end, outcomes, rejected, warnings } = batch?;
            summary.show_warnings(name, &warnings, &bar);
            summary.show_errors(name, &rejected, &bar);
            checkpoint.finish(number, end, rejected, &mut report)?;
            outcomes.into_iter().for_each(|outcome| summary.count(outcome));
            update_progress(&bar, &bytes_read, &summary);
        }
        drop(finished);
        summary.rejected += checkpoint.earlier.rejected;
        bar.finish_and_clear();
        if *interrupted.borrow() {
            let next = match source.path() {
                Some(_) => "run the same command to resume",
                None => "standard input cannot be resumed",
            };
            message(&format!(
                "{name}: interrupted after {}; {next}",
                count(checkpoint.done(), "order")
            ));
        }
        print_summary(name, &summary, &report);
        Ok(summary)
    }

    fn report_path(&self, source: &Source) -> PathBuf {
        let default = || match source.path() {
            Some(path) => {
                let mut name = path.as_os_str().to_owned();
                name.push(".rejected.csv");
                PathBuf::from(name)
            }
            None => PathBuf::from("stdin.rejected.csv"),
        };
        self.report.clone().unwrap_or_else(default)
    }
}

/// Whether two paths name the same file, which may not exist yet.
fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => path::absolute(one).ok() == path::absolute(other).ok(),
    }
}

fn different_report(source: &Source, earlier: &Path) -> anyhow::Error {
    let name = one_line(&source.name());
    let earlier = file_name(earlier);
    usage_error(format!(
        "the unfinished import of {name} reports to {earlier}: resume with --report {earlier}, or \
         remove {name}.import to start over"
    ))
}

#[cfg(test)]
mod tests;
