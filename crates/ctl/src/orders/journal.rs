//! How far an import came, kept beside the file so that the next run goes on from there.
//!
//! Batches finish out of order. The journal knows only how many orders from the beginning are
//! dealt with; what came after is sent again, in the same order, and ends as it did. A file that is
//! done keeps its journal until all files of its command are: sent again after the next one, it
//! would put back what that one changed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::report::{Rejection, Report};

/// What is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Page {
    /// The file as it was: another size or time makes the journal void.
    bytes: u64,
    modified_nanos: u128,
    target: Target,
    progress: Progress,
}

/// How far the import came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    done: u64,
    /// Of those, the ones that were rejected.
    rejected: u64,
    /// Where they are listed, if there are any.
    report: Option<PathBuf>,
    /// On so many rows, one for each failing field.
    rows: usize,
}

/// The intake that the orders went to, and the client they came from: another client may be
/// another merchant's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) intake: String,
    pub(crate) client: String,
}

/// The journal of one import.
pub(crate) struct Journal {
    /// Nothing is kept for standard input.
    path: Option<PathBuf>,
    page: Page,
    before: Progress,
    next_batch: u64,
    /// Batches that finished before an earlier one, by number: orders of the file up to its end, and
    /// those of its own that were rejected.
    ahead: BTreeMap<u64, (u64, Vec<Rejection>)>,
}

impl Journal {
    /// Opens the journal of a file, continuing it if it is about the same file and target.
    pub(crate) fn open(file: Option<&Path>, target: Target) -> anyhow::Result<Self> {
        let progress = Progress::default();
        let blank = Page { bytes: 0, modified_nanos: 0, target, progress };
        let (path, mut page) = match file {
            Some(file) => (Some(beside(file)), describe(file, blank)?),
            None => (None, blank),
        };
        if let Some(path) = &path
            && let Some(left) = read(path)?
        {
            let comparable = Page { progress: Progress::default(), ..left.clone() };
            if comparable == page {
                page = left;
            }
        }
        let before = page.progress.clone();
        Ok(Self { path, page, before, next_batch: 0, ahead: BTreeMap::new() })
    }

    /// How many orders from the beginning an earlier run dealt with.
    pub(crate) fn resumed_at(&self) -> u64 {
        self.before.done
    }

    /// How many of those it rejected.
    pub(crate) fn rejected_before(&self) -> u64 {
        self.before.rejected
    }

    /// Where those are listed.
    pub(crate) fn report_before(&self) -> Option<&Path> {
        self.before.report.as_deref()
    }

    /// On how many rows. The report has more where the end came between the two.
    pub(crate) fn rows_before(&self) -> usize {
        self.before.rows
    }

    /// How many orders from the beginning are dealt with.
    pub(crate) fn done(&self) -> u64 {
        self.page.progress.done
    }

    /// Notes that a batch is dealt with, which ends after `orders` orders of the file and of which
    /// `rejected` were rejected. They are reported once no earlier batch is left: the next run does
    /// not send them again.
    pub(crate) fn finish(
        &mut self,
        batch: u64,
        orders: u64,
        rejected: Vec<Rejection>,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        self.ahead.insert(batch, (orders, rejected));
        let progress = &mut self.page.progress;
        let before = progress.done;
        while let Some((orders, rejected)) = self.ahead.remove(&self.next_batch) {
            self.next_batch += 1;
            progress.done = orders;
            for rejection in &rejected {
                report.add(rejection)?;
                progress.rejected += 1;
                progress.rows += rejection.errors.len();
                progress.report = Some(std::path::absolute(report.path())?);
            }
        }
        if progress.done == before { Ok(()) } else { self.save() }
    }

    /// Takes the journal of a file away: nothing is left to continue.
    pub(crate) fn forget(file: &Path) -> anyhow::Result<()> {
        let path = beside(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    fn save(&self) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let draft = path.with_extension("import.new");
        // A rename is all or nothing: a crash leaves the old page or the new one.
        fs::write(&draft, serde_json::to_vec(&self.page)?)
            .and_then(|()| fs::rename(&draft, path))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".import");
    name.into()
}

fn describe(file: &Path, blank: Page) -> anyhow::Result<Page> {
    let metadata = fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Page { bytes: metadata.len(), modified_nanos: modified.as_nanos(), ..blank })
}

fn read(path: &Path) -> anyhow::Result<Option<Page>> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(count: u64) -> Vec<Rejection> {
        let rejection = |line| Rejection { line, order: String::new(), errors: Vec::new() };
        (0..count).map(rejection).collect()
    }

    fn target(intake: &str, client: &str) -> Target {
        Target { intake: intake.to_owned(), client: client.to_owned() }
    }

    #[test]
    fn only_what_is_dealt_with_from_the_beginning_counts() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::new(folder.path().join("rejected.csv"), "orders.json");
        let mut journal = Journal::open(None, target("intake", "client")).unwrap();
        for (batch, end, done) in [(1, 20, 0), (0, 10, 20), (3, 40, 20), (2, 30, 40)] {
            journal.finish(batch, end, Vec::new(), &mut report).unwrap();
            assert_eq!(journal.done(), done);
        }
    }

    #[test]
    fn the_next_run_goes_on_with_the_same_file_intake_and_client_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("orders.json");
        fs::write(&file, "[]").unwrap();
        let open_as = |intake, client| Journal::open(Some(&file), target(intake, client)).unwrap();
        let open = |intake| open_as(intake, "client");
        let mut report = Report::new(folder.path().join("rejected.csv"), "orders.json");
        let mut first = open("intake");
        first.finish(0, 10, rejected(2), &mut report).unwrap();
        // Sent again by the next run, and counted and reported there.
        first.finish(2, 30, rejected(4), &mut report).unwrap();
        assert_eq!((open("intake").resumed_at(), open("intake").rejected_before()), (10, 2));
        assert_eq!(open("another").resumed_at(), 0);
        assert_eq!(open_as("intake", "another").resumed_at(), 0);
        let mut again = open("intake");
        again.finish(0, 25, rejected(1), &mut report).unwrap();
        assert_eq!((open("intake").resumed_at(), open("intake").rejected_before()), (25, 3));
        fs::write(&file, "[ ]").unwrap();
        assert_eq!((open("intake").resumed_at(), open("intake").rejected_before()), (0, 0));
    }

    #[test]
    fn what_is_forgotten_leaves_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("orders.json");
        fs::write(&file, "[]").unwrap();
        let mut journal = Journal::open(Some(&file), target("intake", "client")).unwrap();
        let mut report = Report::new(folder.path().join("rejected.csv"), "orders.json");
        journal.finish(0, 10, Vec::new(), &mut report).unwrap();
        for _twice in 0..2 {
            Journal::forget(&file).unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
