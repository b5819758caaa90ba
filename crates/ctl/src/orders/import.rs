//! `backhaul orders import`: the six months of orders a merchant starts with.
//!
//! Orders are checked here first, so that one bad order does not hold up the hundred it would be
//! sent with. What the intake still rejects is taken out, and the rest is sent again. Every order
//! of the file ends up stored or in the report.

mod sending;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::path::{self, Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, value_parser};
use domain::order::{MAX_ORDERS, OrderOutcome};
use futures_util::StreamExt as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::watch;

use self::sending::Finished;
use super::batch::Batches;
use super::file::Place;
use super::gateway::{self, Gateway};
use super::journal::Journal;
use super::report::Report;
use crate::Usage;
use crate::settings::Settings;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Files with one order a line or one JSON array, also gzipped; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    connection: gateway::Connection,
    /// Orders in one message
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(1..=500))]
    batch: u64,
    /// Messages under way at once
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u64).range(1..=64))]
    parallel: u64,
    /// Where rejected orders are listed, in the place of an earlier report; FILE.rejected.csv unless
    /// given
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
}

/// What became of the orders of a file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    stored: u64,
    unchanged: u64,
    stale: u64,
    /// Also those of the runs that this one goes on from: whoever asks whether all is well must not
    /// be told of the last part only.
    rejected: u64,
}

impl Tally {
    fn count(&mut self, outcome: OrderOutcome) {
        *match outcome {
            OrderOutcome::Stored => &mut self.stored,
            OrderOutcome::Unchanged => &mut self.unchanged,
            OrderOutcome::Stale => &mut self.stale,
        } += 1;
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { files, connection, batch, parallel, report } = arguments;
    let importer = Importer {
        gateway: Gateway::connect(&connection, &Settings::load()?)?,
        batch: usize::try_from(batch).unwrap_or(MAX_ORDERS),
        parallel: usize::try_from(parallel).unwrap_or(1),
        report,
    };
    Ok(match importer.import_all(&files, watch_for_interrupt()).await? {
        None => ExitCode::from(130),
        Some(0) => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
    })
}

/// Turns true at the first Ctrl-C; the second one ends the program.
fn watch_for_interrupt() -> watch::Receiver<bool> {
    let (interrupt, interrupted) = watch::channel(false);
    #[expect(clippy::disallowed_methods, reason = "it waits for a signal as long as we live")]
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
    gateway: Gateway,
    batch: usize,
    parallel: usize,
    report: Option<PathBuf>,
}

impl Importer {
    /// Imports one file after the other; how many orders were rejected, unless it was interrupted.
    async fn import_all(
        &self,
        files: &[String],
        interrupted: watch::Receiver<bool>,
    ) -> anyhow::Result<Option<u64>> {
        let places: Vec<_> = files.iter().map(|file| Place::from(file.as_str())).collect();
        self.begin_reports(&places)?;
        let mut rejected = 0;
        for (file, place) in files.iter().zip(&places) {
            let tally = self.import(place, file, interrupted.clone()).await;
            let tally = tally.with_context(|| format!("{file} was not imported completely"))?;
            rejected += tally.rejected;
            if *interrupted.borrow() {
                return Ok(None);
            }
        }
        places.iter().filter_map(Place::path).try_for_each(Journal::forget)?;
        Ok(Some(rejected))
    }

    /// Takes reports of earlier runs away, and nothing else: whatever is not a report is refused. Of
    /// one that several files share, only the rows of those that begin anew are taken away when any
    /// other goes on from where it ended. That one goes on in the report it began, after the rows of
    /// which its journal knows.
    fn begin_reports(&self, places: &[Place]) -> anyhow::Result<()> {
        let mut reports: BTreeMap<PathBuf, (bool, Vec<_>)> = BTreeMap::new();
        for place in places {
            let path = self.report_path(place);
            let journal = Journal::open(place.path(), self.gateway.target())?;
            if let Some(before) = journal.report_before().filter(|before| !is_same(before, &path)) {
                return Err(other_report(place, before).into());
            }
            let (any_goes_on, sources) = reports.entry(path).or_default();
            *any_goes_on |= journal.resumed_at() > 0;
            sources.push((place.name(), journal.rows_before()));
        }
        for path in reports.keys() {
            if places.iter().filter_map(Place::path).any(|file| is_same(file, path)) {
                let path = path.display();
                return Err(
                    Usage(format!("{path} is to be imported and cannot be the report")).into()
                );
            }
            if !Report::may_be_at(path)? {
                let path = path.display();
                return Err(
                    Usage(format!("{path} is not a report of rejected orders: it stays")).into()
                );
            }
        }
        for (path, (any_goes_on, sources)) in &reports {
            let begun = match any_goes_on {
                true => Report::cut(path, sources),
                false => Report::begin_anew(path),
            };
            begun.with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    async fn import(
        &self,
        place: &Place,
        name: &str,
        interrupted: watch::Receiver<bool>,
    ) -> anyhow::Result<Tally> {
        let mut journal = Journal::open(place.path(), self.gateway.target())?;
        let resumed_at = journal.resumed_at();
        let mut report = Report::new(self.report_path(place), name);
        let (entries, taken) = place.open()?;
        let bar = progress_bar(place, name);
        if resumed_at > 0 {
            bar.println(format!("{name}: going on after {resumed_at} orders"));
        }
        let batches = Batches::new(entries, self.batch, resumed_at);
        let mut finished = self.send_all(batches, interrupted.clone());
        let mut tally = Tally::default();
        while let Some(batch) = finished.next().await {
            let Finished { number, end, outcomes, rejected } = batch?;
            tally.rejected += u64::try_from(rejected.len()).unwrap_or(u64::MAX);
            journal.finish(number, end, rejected, &mut report)?;
            outcomes.into_iter().for_each(|outcome| tally.count(outcome));
            advance(&bar, &taken, &tally);
        }
        drop(finished);
        tally.rejected += journal.rejected_before();
        bar.finish_and_clear();
        if *interrupted.borrow() {
            let next = match place.path() {
                Some(_) => "the same command goes on from here",
                None => "nothing is kept of standard input, so begin anew",
            };
            eprintln!("{name}: interrupted after {} orders; {next}", journal.done());
        }
        summarize(name, &tally, &report);
        Ok(tally)
    }

    fn report_path(&self, place: &Place) -> PathBuf {
        let default = || match place.path() {
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

/// Whether two paths lead to one file; one that is not there yet is no other.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => path::absolute(one).ok() == path::absolute(other).ok(),
    }
}

fn other_report(place: &Place, before: &Path) -> Usage {
    let (name, before) = (place.name(), before.display());
    Usage(format!(
        "an import of {name} was not finished and lists rejected orders in {before}: go on with \
         --report {before}, or remove {name}.import to begin anew"
    ))
}

fn progress_bar(place: &Place, name: &str) -> ProgressBar {
    let size = place.path().and_then(|path| path.metadata().ok()).map(|metadata| metadata.len());
    let template = match size {
        Some(_) => "{prefix} {wide_bar} {percent:>3} % {msg}, {eta} left",
        None => "{prefix} {spinner} {elapsed} {msg}",
    };
    let bar = size.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    if !io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(name.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn advance(bar: &ProgressBar, taken: &AtomicU64, tally: &Tally) {
    let done = tally.stored + tally.unchanged + tally.stale + tally.rejected;
    let rate = u128::from(done) * 1000 / bar.elapsed().as_millis().max(1);
    bar.set_position(taken.load(Ordering::Relaxed));
    bar.set_message(format!("{done} orders, {rate}/s, {} rejected", tally.rejected));
}

fn summarize(name: &str, tally: &Tally, report: &Report) {
    let Tally { stored, unchanged, stale, rejected } = tally;
    eprintln!("{name}: {stored} stored, {unchanged} unchanged, {stale} stale, {rejected} rejected");
    if *rejected > 0 {
        eprintln!("{name}: rejected orders are listed in {}", report.path().display());
    }
}

#[cfg(test)]
mod tests;
