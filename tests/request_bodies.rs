//! Checks that handlers read bodies with the reader of `platform::http` only. The extractors of actix-web
//! decompress a body before they compare it with a limit, and wait for it without a timeout.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Arguments of handlers, and calls of extractors, that read a body.
const EXTRACTORS: [&str; 9] = [
    "web::Form<",
    ": web::Json<",
    ": web::Bytes,",
    ": web::Bytes)",
    ": web::Payload",
    "Bytes::from_request",
    "String::from_request",
    "web::PayloadConfig",
    "web::FormConfig",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // Stand-ins for services in tests serve nobody else.
            if !path.ends_with("tests") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            found.push(path);
        }
    }
}

#[test]
fn bodies_are_read_within_limits() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut files = Vec::new();
    for folder in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        sources(&folder.join("src"), &mut files);
    }
    assert!(files.len() > 100, "{}", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines() {
            if EXTRACTORS.iter().any(|extractor| line.contains(extractor)) {
                found.push(format!("{}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "use the reader of platform::http:\n{}", found.join("\n"));
}
