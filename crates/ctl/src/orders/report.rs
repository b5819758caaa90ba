//! The report of rejected orders, a CSV file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use domain::csv::{quoted, row};
use domain::json::FieldError;

const HEADINGS: [&str; 6] = ["file", "line", "order", "field", "code", "detail"];

/// A rejected order and its errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) line: u64,
    /// The order's identifier; empty if it cannot be read.
    pub(crate) order: String,
    pub(crate) errors: Vec<FieldError>,
}

/// The rejected orders of one file, one row for each invalid field. The first row creates the report.
pub(crate) struct Report {
    path: PathBuf,
    source: String,
    file: Option<File>,
}

impl Report {
    /// A report that appends to an existing file.
    pub(crate) fn new(path: PathBuf, source: &str) -> Self {
        Self { path, source: source.to_owned(), file: None }
    }

    /// Whether a report may be written to this path: the file does not exist, or it is a report. A
    /// device such as /dev/null is allowed.
    pub(crate) fn is_allowed_at(path: &Path) -> io::Result<bool> {
        let kind = match path.metadata() {
            Ok(metadata) => metadata.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        };
        if !kind.is_file() {
            return Ok(!kind.is_dir());
        }
        let headings = row(HEADINGS);
        let mut start = Vec::new();
        File::open(path)?.take(headings.len().try_into().unwrap_or(0)).read_to_end(&mut start)?;
        Ok(start.is_empty() || start == headings.as_bytes())
    }

    /// Deletes the report of an earlier run.
    pub(crate) fn delete(path: &Path) -> io::Result<()> {
        if path.is_file() { std::fs::remove_file(path) } else { Ok(()) }
    }

    /// Keeps the first rows of each of these files, as many as given, and all rows of other files.
    /// Incomplete rows are removed.
    pub(crate) fn truncate(path: &Path, sources: &[(impl AsRef<str>, usize)]) -> io::Result<()> {
        if !path.is_file() {
            return Ok(());
        }
        let mut remaining: Vec<_> = sources
            .iter()
            .map(|(source, rows)| (format!("{},", quoted(source.as_ref())), *rows))
            .collect();
        let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
        let (headings, rest) = text.split_at(row(HEADINGS).len().min(text.len()));
        let kept_rows = rows(rest).filter(|row| row.ends_with("\r\n")).filter(|row| {
            let source = remaining.iter_mut().find(|(start, _)| row.starts_with(start.as_str()));
            source.is_none_or(|(_, remaining)| {
                let is_kept = *remaining > 0;
                *remaining = remaining.saturating_sub(1);
                is_kept
            })
        });
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        // The rename is atomic: a crash leaves the old report or the new one.
        std::fs::write(&temporary, headings.to_owned() + &kept_rows.collect::<String>())?;
        std::fs::rename(&temporary, path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn add(&mut self, rejection: &Rejection) -> io::Result<()> {
        let line = rejection.line.to_string();
        let mut rows = String::new();
        for error in &rejection.errors {
            let code = error.code.to_string();
            let detail = error.detail.as_deref().unwrap_or("");
            let cells: [&str; 6] =
                [&self.source, &line, &rejection.order, &error.field, &code, detail];
            rows.push_str(&row(cells));
        }
        self.open()?.write_all(rows.as_bytes())
    }

    fn open(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            if file.metadata()?.len() == 0 {
                file.write_all(row(HEADINGS).as_bytes())?;
            }
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| io::Error::other("the report is not open"))
    }
}

/// The rows of a CSV text with their line endings. Quoted cells may contain line breaks.
fn rows(table: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    table.split_inclusive(move |c| {
        is_quoted ^= c == '"';
        c == '\n' && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn rejection(line: u64) -> Rejection {
        Rejection {
            line,
            order: "=1001".to_owned(),
            errors: vec![
                FieldError::invalid("$.items[0]['a,b']", "says \"no\""),
                FieldError::invalid("$.status", "must be one of Created, Shipped"),
            ],
        }
    }

    #[test]
    fn a_report_is_csv_and_can_be_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejected.csv");
        let mut report = Report::new(path.clone(), "orders.json");
        assert!(!path.exists());
        report.add(&rejection(3)).unwrap();
        Report::new(path.clone(), "orders.json").add(&rejection(9)).unwrap();
        expect![[r#"
            file,line,order,field,code,detail
            orders.json,3,'=1001,"$.items[0]['a,b']",invalid,"says ""no"""
            orders.json,3,'=1001,$.status,invalid,"must be one of Created, Shipped"
            orders.json,9,'=1001,"$.items[0]['a,b']",invalid,"says ""no"""
            orders.json,9,'=1001,$.status,invalid,"must be one of Created, Shipped"
        "#]]
        .assert_eq(&std::fs::read_to_string(&path).unwrap().replace('\r', ""));
        assert!(Report::is_allowed_at(&path).unwrap());
        Report::delete(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn the_rows_of_one_file_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejected.csv");
        for source in ["a,b.json", "c.json", "a,b.json", "a"] {
            let errors = vec![FieldError::invalid("$", "two\na,b.json,\"lines\"")];
            let rejection = Rejection { line: 1, order: String::new(), errors };
            Report::new(path.clone(), source).add(&rejection).unwrap();
        }
        Report::truncate(&path, &[("a,b.json", 0), ("c.json", 1)]).unwrap();
        expect![[r#"
            file,line,order,field,code,detail
            c.json,1,,$,invalid,"two
            a,b.json,""lines"""
            a,1,,$,invalid,"two
            a,b.json,""lines"""
        "#]]
        .assert_eq(&std::fs::read_to_string(&path).unwrap().replace('\r', ""));
        Report::truncate(&path, &[("a", 0), ("c.json", 0)]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), row(HEADINGS));
    }

    #[test]
    fn rows_beyond_the_checkpoint_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejected.csv");
        for (source, line) in [("a", 3), ("b", 3), ("a", 9)] {
            Report::new(path.clone(), source).add(&rejection(line)).unwrap();
        }
        // A crash in the middle of a row and of a character.
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_slice(b"a,11,1002,\"$.titl\xc3");
        std::fs::write(&path, torn).unwrap();
        // A crash in the middle of another truncation.
        std::fs::write(folder.path().join("rejected.csv.new"), [b'x'; 1000]).unwrap();
        Report::truncate(&path, &[("a", 3)]).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let kept: Vec<_> = std::fs::read_to_string(&path)
            .unwrap()
            .lines()
            .skip(1)
            .map(|row| row.split(',').take(2).collect::<String>())
            .collect();
        assert_eq!(kept, ["a3", "a3", "b3", "b3", "a9"]);
    }

    #[test]
    fn only_a_report_may_be_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejected.csv");
        let is_allowed = |content: &str| {
            std::fs::write(&path, content).unwrap();
            Report::is_allowed_at(&path).unwrap()
        };
        assert!(is_allowed("") && is_allowed("file,line,order,field,code,detail\r\n"));
        assert!(!is_allowed("file,line\r\n") && !is_allowed("{}") && !is_allowed("\u{1f}\u{8b}"));
        assert!(!Report::is_allowed_at(folder.path()).unwrap());
        assert!(Report::is_allowed_at(&folder.path().join("none.csv")).unwrap());
        let device = Path::new("/dev/null");
        assert!(Report::is_allowed_at(device).unwrap());
        Report::delete(device).unwrap();
        assert!(device.exists());
    }
}
