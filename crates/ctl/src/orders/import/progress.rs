//! The result of an import and its progress.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::order::OrderOutcome;
use domain::printable::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::orders::check::describe_error;
use crate::orders::file::Source;
use crate::orders::report::{Rejection, Report};
use crate::output::{count, file_name, is_stderr_terminal, message};

/// Further errors are only counted. The report lists all of them.
const MAX_SHOWN_ERRORS: u64 = 10;
/// Further warnings are only counted.
const MAX_SHOWN_WARNINGS: u64 = 20;

/// Number of orders of a file by result.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    pub(super) stored: u64,
    pub(super) unchanged: u64,
    pub(super) stale: u64,
    /// Includes the rejected orders of earlier runs that this run resumes, because the exit code
    /// concerns the whole file.
    pub(super) rejected: u64,
    /// Errors of orders that this run rejected.
    pub(super) errors: u64,
    /// Warnings about orders that this run sent or rejected.
    pub(super) warnings: u64,
}

impl Summary {
    pub(super) fn count(&mut self, outcome: OrderOutcome) {
        *match outcome {
            OrderOutcome::Stored => &mut self.stored,
            OrderOutcome::Unchanged => &mut self.unchanged,
            OrderOutcome::Stale => &mut self.stale,
        } += 1;
    }

    /// Counts rejected orders and their errors, and shows the first errors.
    pub(super) fn show_errors(&mut self, name: &str, rejected: &[Rejection], bar: &ProgressBar) {
        for Rejection { line, order, errors } in rejected {
            self.rejected += 1;
            for error in errors {
                if self.errors < MAX_SHOWN_ERRORS {
                    bar.suspend(|| {
                        message(&format!("{name}:{line}: {}", describe_error(order, error)))
                    });
                }
                self.errors += 1;
            }
        }
    }

    /// Shows the first warnings and counts the others.
    pub(super) fn show_warnings(
        &mut self,
        name: &str,
        warnings: &[(u64, String)],
        bar: &ProgressBar,
    ) {
        for (line, warning) in warnings {
            if self.warnings < MAX_SHOWN_WARNINGS {
                bar.suspend(|| message(&format!("{name}:{line}: {warning}")));
            }
            self.warnings += 1;
        }
    }
}

pub(super) fn progress_bar(source: &Source, name: &str) -> ProgressBar {
    let size = source.path().and_then(|path| path.metadata().ok()).map(|metadata| metadata.len());
    let template = match size {
        Some(_) => "{prefix} {wide_bar} {percent:>3} % {msg}, {eta} left",
        None => "{prefix} {spinner} {elapsed} {msg}",
    };
    let bar = size.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    if !is_stderr_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(printable(name));
    bar.set_message("0 orders");
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

pub(super) fn update_progress(bar: &ProgressBar, bytes_read: &AtomicU64, summary: &Summary) {
    let done = summary.stored + summary.unchanged + summary.stale + summary.rejected;
    let rate = u128::from(done) * 1000 / bar.elapsed().as_millis().max(1);
    bar.set_position(bytes_read.load(Ordering::Relaxed));
    bar.set_message(format!("{}, {rate}/s, {} rejected", count(done, "order"), summary.rejected));
}

pub(super) fn print_summary(name: &str, summary: &Summary, report: &Report) {
    let Summary { stored, unchanged, stale, rejected, errors, warnings } = summary;
    let more = match *warnings {
        0 => String::new(),
        number => format!(", {}", count(number, "warning")),
    };
    message(&format!(
        "{name}: {stored} stored, {unchanged} unchanged, {stale} stale, {rejected} rejected{more}"
    ));
    if *warnings > MAX_SHOWN_WARNINGS {
        message(&format!("{name}: backhaul orders validate lists all warnings"));
    }
    if *errors > MAX_SHOWN_ERRORS {
        message(&format!("{name}: {}", count(*errors - MAX_SHOWN_ERRORS, "more error")));
    }
    if *rejected > 0 {
        message(&format!("{name}: rejected orders are listed in {}", file_name(report.path())));
    }
}
