//! The list of rejected orders, as a file that a spreadsheet opens.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use domain::json::FieldError;

const HEADINGS: [&str; 6] = ["file", "line", "order", "field", "code", "detail"];

/// One order and everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) line: u64,
    /// Empty when not even that could be read.
    pub(crate) order: String,
    pub(crate) errors: Vec<FieldError>,
}

/// Rejected orders of one file, one row for each failing field. The file appears with the first.
pub(crate) struct Report {
    path: PathBuf,
    source: String,
    file: Option<File>,
}

impl Report {
    /// A report that goes on after what the file holds already.
    pub(crate) fn new(path: PathBuf, source: &str) -> Self {
        Self { path, source: source.to_owned(), file: None }
    }

    /// Whether a report can be written there and taken away again: nothing is there, or nothing but
    /// a report. What is no file (a terminal, /dev/null) is only written to.
    pub(crate) fn may_be_at(path: &Path) -> io::Result<bool> {
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

    /// Takes a report of another run away.
    pub(crate) fn begin_anew(path: &Path) -> io::Result<()> {
        if path.is_file() { std::fs::remove_file(path) } else { Ok(()) }
    }

    /// Keeps so many rows about each of these files, and all about others. A row without its end
    /// is nobody's.
    pub(crate) fn cut(path: &Path, sources: &[(impl AsRef<str>, usize)]) -> io::Result<()> {
        if !path.is_file() {
            return Ok(());
        }
        let mut left: Vec<_> = sources
            .iter()
            .map(|(source, rows)| (format!("{},", quoted(source.as_ref())), *rows))
            .collect();
        let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
        let (headings, rest) = text.split_at(row(HEADINGS).len().min(text.len()));
        let kept = rows(rest).filter(|row| row.ends_with("\r\n")).filter(|row| {
            let about = left.iter_mut().find(|(start, _)| row.starts_with(start.as_str()));
            about.is_none_or(|(_, left)| {
                let is_kept = *left > 0;
                *left = left.saturating_sub(1);
                is_kept
            })
        });
        let mut draft = path.as_os_str().to_owned();
        draft.push(".new");
        // A rename is all or nothing: a crash leaves the old report or the new one.
        std::fs::write(&draft, headings.to_owned() + &kept.collect::<String>())?;
        std::fs::rename(&draft, path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn add(&mut self, rejection: &Rejection) -> io::Result<()> {
        let line = rejection.line.to_string();
        let mut rows = String::new();
        for error in &rejection.errors {
            let (code, detail) = (error.code.to_string(), error.detail.as_deref().unwrap_or(""));
            let cells = [&self.source, &line, &rejection.order, &error.field, &code, detail];
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

fn row<const N: usize>(cells: [&str; N]) -> String {
    let mut row = cells.map(quoted).join(",");
    row.push_str("\r\n");
    row
}

/// The rows of a table, each with its end. A line may also break inside a quoted cell.
fn rows(table: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    table.split_inclusive(move |c| {
        is_quoted ^= c == '"';
        c == '\n' && !is_quoted
    })
}

/// A cell as RFC 4180 writes it. One that a spreadsheet would take for a formula is made text.
fn quoted(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t']);
    let cell = if formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
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
    fn a_report_is_a_table_and_can_be_continued() {
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
        assert!(Report::may_be_at(&path).unwrap());
        Report::begin_anew(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn the_rows_of_one_file_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejected.csv");
        for source in ["a,b.json", "c.json", "a,b.json", "a"] {
            let errors = vec![FieldError::invalid("$", "two\na,b.json,\"lines\"")];
            let rejection = Rejection { line: 1, order: String::new(), errors };
            Report::new(path.clone(), source).add(&rejection).unwrap();
        }
        Report::cut(&path, &[("a,b.json", 0), ("c.json", 1)]).unwrap();
        expect![[r#"
            file,line,order,field,code,detail
            c.json,1,,$,invalid,"two
            a,b.json,""lines"""
            a,1,,$,invalid,"two
            a,b.json,""lines"""
        "#]]
        .assert_eq(&std::fs::read_to_string(&path).unwrap().replace('\r', ""));
        Report::cut(&path, &[("a", 0), ("c.json", 0)]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), row(HEADINGS));
    }

    #[test]
    fn rows_past_those_that_count_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejected.csv");
        for (source, line) in [("a", 3), ("b", 3), ("a", 9)] {
            Report::new(path.clone(), source).add(&rejection(line)).unwrap();
        }
        // The program ended in the middle of a row, and of a letter.
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_slice(b"a,11,1002,\"$.titl\xc3");
        std::fs::write(&path, torn).unwrap();
        // Another one ended while it was cutting.
        std::fs::write(folder.path().join("rejected.csv.new"), [b'x'; 1000]).unwrap();
        Report::cut(&path, &[("a", 3)]).unwrap();
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
    fn only_a_report_is_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejected.csv");
        let may_be = |content: &str| {
            std::fs::write(&path, content).unwrap();
            Report::may_be_at(&path).unwrap()
        };
        assert!(may_be("") && may_be("file,line,order,field,code,detail\r\n"));
        assert!(!may_be("file,line\r\n") && !may_be("{}") && !may_be("\u{1f}\u{8b}"));
        assert!(!Report::may_be_at(folder.path()).unwrap());
        assert!(Report::may_be_at(&folder.path().join("none.csv")).unwrap());
        let device = Path::new("/dev/null");
        assert!(Report::may_be_at(device).unwrap());
        Report::begin_anew(device).unwrap();
        assert!(device.exists());
    }
}
