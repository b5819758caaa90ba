//! The progress of an import, stored beside the file so that the next run resumes there.
//!
//! Batches finish out of order. The checkpoint counts only the orders that are done without a gap
//! from the start; the next run sends all later ones again, in the same order. A completed file keeps
//! its checkpoint until all files of the command are completed: if it were sent again after a later
//! file, it would overwrite the changes of that file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::report::{Rejection, Report};
use crate::output::file_name;

/// The content of a checkpoint file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    /// Size of the orders file. A changed size or modification time invalidates the checkpoint.
    bytes: u64,
    modified_nanos: u128,
    target: Target,
    progress: Progress,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Number of orders done without a gap from the start.
    pub(crate) done: u64,
    /// Number of done orders that were rejected.
    pub(crate) rejected: u64,
    /// The report that lists the rejected orders.
    pub(crate) report: Option<PathBuf>,
    /// Number of rows in the report, one for each invalid field. After a crash the report may have
    /// more.
    pub(crate) rows: usize,
}

/// The order intake and the API client of an import. Another client may belong to another merchant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) intake: String,
    pub(crate) client: String,
}

/// The checkpoint of one file.
pub(crate) struct Checkpoint {
    /// Absent for standard input, which cannot be resumed.
    path: Option<PathBuf>,
    content: Content,
    /// The progress of earlier runs.
    pub(crate) earlier: Progress,
    next_batch: u64,
    /// Batches that finished before their predecessor, by number, each with the number of orders up
    /// to its end and its rejected orders.
    finished_early: BTreeMap<u64, (u64, Vec<Rejection>)>,
}

impl Checkpoint {
    /// Opens the checkpoint of a file and resumes it if file and target are the same.
    pub(crate) fn open(file: Option<&Path>, target: Target) -> anyhow::Result<Self> {
        let progress = Progress::default();
        let mut content = Content { bytes: 0, modified_nanos: 0, target, progress };
        if let Some(file) = file {
            content = with_metadata(content, file)?;
        }
        let path = file.map(checkpoint_path);
        if let Some(path) = &path
            && let Some(stored) = read(path)?
        {
            let without_progress = Content { progress: Progress::default(), ..stored.clone() };
            if without_progress == content {
                content = stored;
            }
        }
        let earlier = content.progress.clone();
        Ok(Self { path, content, earlier, next_batch: 0, finished_early: BTreeMap::new() })
    }

    /// Number of orders that this run and earlier runs have done.
    pub(crate) fn done(&self) -> u64 {
        self.content.progress.done
    }

    /// Records a finished batch that ends after `orders` orders of the file. Its rejected orders are
    /// reported once all earlier batches are finished, because only then the next run skips them.
    pub(crate) fn finish(
        &mut self,
        batch: u64,
        orders: u64,
        rejected: Vec<Rejection>,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        self.finished_early.insert(batch, (orders, rejected));
        let progress = &mut self.content.progress;
        let done_before = progress.done;
        while let Some((orders, rejected)) = self.finished_early.remove(&self.next_batch) {
            self.next_batch += 1;
            progress.done = orders;
            for rejection in &rejected {
                report.add(rejection)?;
                progress.rejected += 1;
                progress.rows += rejection.errors.len();
                progress.report = Some(std::path::absolute(report.path())?);
            }
        }
        if progress.done == done_before { Ok(()) } else { self.save() }
    }

    /// Deletes the checkpoint of a completed file.
    pub(crate) fn delete(file: &Path) -> anyhow::Result<()> {
        let path = checkpoint_path(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", file_name(&path)))
            }
            _ => Ok(()),
        }
    }

    fn save(&self) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let temporary = path.with_extension("import.new");
        // The rename is atomic: a crash leaves the old file or the new one.
        fs::write(&temporary, serde_json::to_vec(&self.content)?)
            .and_then(|()| fs::rename(&temporary, path))
            .with_context(|| format!("cannot write {}", file_name(path)))
    }
}

fn checkpoint_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".import");
    name.into()
}

fn with_metadata(content: Content, file: &Path) -> anyhow::Result<Content> {
    let metadata =
        fs::metadata(file).with_context(|| format!("cannot read {}", file_name(file)))?;
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Content { bytes: metadata.len(), modified_nanos: modified.as_nanos(), ..content })
}

fn read(path: &Path) -> anyhow::Result<Option<Content>> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file_name(path))),
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
    fn only_orders_without_a_gap_from_the_start_are_done() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::new(folder.path().join("rejected.csv"), "orders.json");
        let mut checkpoint = Checkpoint::open(None, target("intake", "client")).unwrap();
        for (batch, end, done) in [(1, 20, 0), (0, 10, 20), (3, 40, 20), (2, 30, 40)] {
            checkpoint.finish(batch, end, Vec::new(), &mut report).unwrap();
            assert_eq!(checkpoint.done(), done);
        }
    }

    #[test]
    fn an_import_resumes_only_with_the_same_file_intake_and_client() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("orders.json");
        fs::write(&file, "[]").unwrap();
        let open_as =
            |intake, client| Checkpoint::open(Some(&file), target(intake, client)).unwrap();
        let open = |intake| open_as(intake, "client");
        let progress = |intake| (open(intake).earlier.done, open(intake).earlier.rejected);
        let mut report = Report::new(folder.path().join("rejected.csv"), "orders.json");
        let mut first = open("intake");
        first.finish(0, 10, rejected(2), &mut report).unwrap();
        // The next run sends this batch again, counts it and reports it.
        first.finish(2, 30, rejected(4), &mut report).unwrap();
        assert_eq!(progress("intake"), (10, 2));
        assert_eq!(open("another").earlier.done, 0);
        assert_eq!(open_as("intake", "another").earlier.done, 0);
        let mut again = open("intake");
        again.finish(0, 25, rejected(1), &mut report).unwrap();
        assert_eq!(progress("intake"), (25, 3));
        fs::write(&file, "[ ]").unwrap();
        assert_eq!(progress("intake"), (0, 0));
    }

    #[test]
    fn a_deleted_checkpoint_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("orders.json");
        fs::write(&file, "[]").unwrap();
        let mut checkpoint = Checkpoint::open(Some(&file), target("intake", "client")).unwrap();
        let mut report = Report::new(folder.path().join("rejected.csv"), "orders.json");
        checkpoint.finish(0, 10, Vec::new(), &mut report).unwrap();
        for _twice in 0..2 {
            Checkpoint::delete(&file).unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
