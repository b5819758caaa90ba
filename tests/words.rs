//! Checks the wording of comments, documentation and names in the whole repository.
//!
//! A sentence starts with the noun that it is about, so no comment or doc sentence may open with a
//! word such as "What" or "Whoever". Some words that authors write by habit are rejected too; docs/glossary.md
//! has the terms for them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Words that must not open a sentence.
const OPENERS: [&str; 6] = ["What", "Who", "Whoever", "Whom", "Whose", "Of"];

/// One retired word and its replacement on each line.
const RETIRED_WORDS: &str = include_str!("retired_words.txt");

/// Folders and files of the repository that are checked.
const ROOTS: [&str; 18] = [
    ".clippy.toml",
    ".github",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "README.md",
    "SECURITY.md",
    "crates",
    "deny.toml",
    "deploy",
    "docker-compose.yml",
    "docs",
    "examples",
    "migrations",
    "proto-schemas",
    "scripts",
    "tests",
];

/// These name the retired words.
const SKIPPED: [&str; 2] = ["tests/retired_words.txt", "tests/words.rs"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Comments start with `//`.
    Rust,
    /// Comments start with `#`.
    Script,
    /// Comments start with `--`.
    Sql,
    /// Comments start with `#`; texts are values.
    Yaml,
    /// Texts are values.
    Json,
    /// Every line outside fenced code is text.
    Markdown,
}

impl Format {
    fn of(path: &Path) -> Option<Self> {
        let extension = path.extension().map(|extension| extension.to_str().unwrap_or_default());
        match extension {
            Some("rs" | "mjs") => Some(Self::Rust),
            Some("toml" | "sh" | "py" | "conf") => Some(Self::Script),
            Some("sql") => Some(Self::Sql),
            Some("yaml" | "yml") => Some(Self::Yaml),
            Some("json") => Some(Self::Json),
            Some("md" | "txt") => Some(Self::Markdown),
            // Executable scripts and the Dockerfile.
            None => Some(Self::Script),
            Some(_) => None,
        }
    }
}

/// The parts of a line that are sentences for people.
fn sentences(format: Format, line: &str) -> Vec<&str> {
    let line = line.trim_start();
    let comment = |mark: &str| match line.strip_prefix(mark) {
        Some(text) => Some(text.trim_start_matches(['/', '!', '#'])),
        None => line.split_once(&format!(" {mark} ")).map(|(_, text)| text),
    };
    let value = || line.split_once(": ").map(|(_, text)| text);
    let texts: Vec<&str> = match format {
        Format::Rust => comment("//").into_iter().collect(),
        Format::Script => comment("#").into_iter().chain(line.strip_prefix("\"\"\"")).collect(),
        Format::Sql => comment("--").into_iter().collect(),
        Format::Yaml => comment("#").into_iter().chain(value()).chain([line]).collect(),
        Format::Json => value().into_iter().collect(),
        Format::Markdown => line.split('|').collect(),
    };
    let ends = [". ", "? ", "! ", ".\" ", ".) "];
    let mut sentences = texts.clone();
    for text in texts {
        for end in ends {
            sentences.extend(text.match_indices(end).map(|(at, end)| &text[at + end.len()..]));
        }
    }
    sentences
}

/// The word from [`OPENERS`] that opens a sentence of the line.
fn opener(format: Format, line: &str) -> Option<&'static str> {
    sentences(format, line).into_iter().find_map(|sentence| {
        let markup =
            |c: char| c.is_whitespace() || c.is_ascii_digit() || "#*_>`'\"-.([".contains(c);
        let sentence = sentence.trim_start_matches(markup);
        let end = sentence.find(|c: char| !c.is_alphabetic()).unwrap_or(sentence.len());
        OPENERS.into_iter().find(|opener| *opener == &sentence[..end])
    })
}

/// The retired words with their replacements.
fn retired_words() -> Vec<(&'static str, &'static str)> {
    let lines = RETIRED_WORDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(" = ").unwrap_or_else(|| panic!("{line:?}"))).collect()
}

fn uses(line: &str, word: &str) -> bool {
    let joined = |a: Option<char>, b: Option<char>| in_word(a) && in_word(b);
    // A retired identifier must not begin another one either, as in `put_aside_locked`.
    let is_identifier = word.contains('_');
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let continues = joined(word.chars().next_back(), after);
        let begins_identifier = is_identifier && after == Some('_');
        !joined(before, word.chars().next()) && (!continues || begins_identifier)
    })
}

fn in_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// Complaints about a file, each with its line number.
fn complaints(format: Format, text: &str, words: &[(&str, &str)]) -> Vec<(usize, String)> {
    let mut complaints = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        let fence = format == Format::Markdown && line.trim_start().starts_with("```");
        fenced ^= fence;
        let opener = if fenced || fence { None } else { opener(format, line) };
        complaints.extend(opener.map(|word| (number, format!("a sentence opens with {word:?}"))));
        let retired = words.iter().filter(|(word, _)| uses(line, word));
        complaints.extend(retired.map(|(word, new)| (number, format!("{word:?} is now {new}"))));
    }
    complaints
}

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), found);
        }
    } else if path.exists() {
        found.push(path.to_owned());
    }
}

#[test]
fn comments_documentation_and_names_use_plain_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let words = retired_words();
    let mut found = Vec::new();
    ROOTS.iter().for_each(|name| files(&root.join(name), &mut found));
    found.sort();
    let mut report = String::new();
    let mut totals = BTreeMap::<String, usize>::new();
    for file in found {
        let path = file.strip_prefix(root).unwrap();
        let Some(format) =
            Format::of(path).filter(|_| !SKIPPED.iter().any(|skipped| path == Path::new(skipped)))
        else {
            continue;
        };
        let text = fs::read_to_string(&file).unwrap();
        let part: PathBuf =
            path.iter().take(if path.starts_with("crates") { 2 } else { 1 }).collect();
        for (line, complaint) in complaints(format, &text, &words) {
            *totals.entry(part.display().to_string()).or_default() += 1;
            report.push_str(&format!("{}:{line}: {complaint}\n", path.display()));
        }
    }
    assert!(totals.is_empty(), "\n{report}\n{totals:#?}");
}

#[test]
fn openers_are_found_where_sentences_start() {
    let flagged = [
        (Format::Rust, "/// What a client may do."),
        (Format::Rust, "    // Whoever comes first."),
        (Format::Rust, "//! A merchant. Who it is does not matter."),
        (Format::Rust, "let a = 1; // Of all replicas one."),
        (Format::Script, "# Whose word counts."),
        (Format::Script, "port = 1 # What it listens on"),
        (Format::Script, "\"\"\"What others see.\"\"\""),
        (Format::Sql, "-- What we learnt."),
        (Format::Yaml, "description: What came of it"),
        (Format::Yaml, "  description: 'What came of it'"),
        (Format::Yaml, "      What came of it."),
        (Format::Json, "\"description\": \"Who hears it\""),
        (Format::Markdown, "## What is delivered"),
        (Format::Markdown, "- **Who may override**: operators."),
        (Format::Markdown, "1. Whoever runs it."),
        (Format::Markdown, "| term | What it is |"),
        (Format::Markdown, "It is sent. What then?"),
    ];
    for (format, line) in flagged {
        assert!(opener(format, line).is_some(), "{line}");
    }
}

#[test]
fn other_lines_have_no_opener() {
    let accepted = [
        (Format::Rust, "/// Decides what a client may do."),
        (Format::Rust, "/// Whole orders only."),
        (Format::Rust, "let text = \"What\";"),
        (Format::Rust, "Outcome::What => 1,"),
        (Format::Script, "echo 'What'"),
        (Format::Sql, "SELECT 'What' -- the first"),
        (Format::Yaml, "description: Says what came of it"),
        (Format::Json, "\"What\": 1"),
        (Format::Markdown, "Office hours, and what is left of them"),
        (Format::Markdown, "| variable | what it is |"),
    ];
    for (format, line) in accepted {
        assert_eq!(opener(format, line), None, "{line}");
    }
}

#[test]
fn retired_words_are_found_as_whole_words() {
    let uses_any = |line: &str| retired_words().iter().any(|(word, _)| uses(line, word));
    let retired = [
        "let in_the_air = 1;",
        "self.put_aside_locked(queued)",
        "answer::new()",
        "--lane 5",
        "(lane)",
        "as whoever comes",
    ];
    for line in retired {
        assert!(uses_any(line), "{line}");
    }
    for line in
        ["planes", "answering", "lane2", "my_lane", "Answer", "somebody_else", "in_the_airport"]
    {
        assert!(!uses_any(line), "{line}");
    }
}

#[test]
fn fenced_code_is_searched_for_retired_words_only() {
    let text = "Text.\n```sh\n# What it prints\ntour --lane 5\n```\nWhat now?\n";
    let expected = [
        (4, "\"lane\" is now ordering key".to_owned()),
        (6, "a sentence opens with \"What\"".to_owned()),
    ];
    assert_eq!(complaints(Format::Markdown, text, &retired_words()), expected);
}
