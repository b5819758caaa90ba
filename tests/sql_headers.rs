//! Checks that a longer SQL statement says at its start what it does, see docs/decisions/queries.md.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A statement with more lines needs a header.
const MAX_LINES: usize = 10;

fn statements(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            statements(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "sql") {
            found.push(path);
        }
    }
}

fn lacks_header(statement: &str) -> bool {
    statement.lines().count() > MAX_LINES && !statement.starts_with("--")
}

#[test]
fn long_statements_have_a_header() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut files = Vec::new();
    for folder in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        statements(&folder.join("src"), &mut files);
    }
    assert!(files.len() > 50, "{}", files.len());
    files.retain(|file| lacks_header(&fs::read_to_string(file).unwrap()));
    assert!(
        files.is_empty(),
        "a comment must say what these do, with their parameters: {files:#?}"
    );
}

#[test]
fn only_a_long_statement_without_a_comment_lacks_a_header() {
    let long = "SELECT 1\n".repeat(MAX_LINES + 1);
    assert!(lacks_header(&long));
    assert!(!lacks_header(&format!("-- Returns the number.\n{long}")));
    assert!(!lacks_header("SELECT 1\n"));
}
