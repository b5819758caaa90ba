//! Rules that every command follows.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory as _, Parser as _};

use super::{Cli, UsageError, run};

/// Commands whose output is not a table or a text that JSON could replace.
const WITHOUT_JSON: [&str; 3] =
    ["backhaul completions", "backhaul man", "backhaul orders generate"];

/// Every command that can be run, with its whole name.
fn runnable(parent: &str, command: &Command, found: &mut Vec<(String, Command)>) {
    let name = format!("{parent}{}", command.get_name());
    if command.has_subcommands() {
        let subcommands = command.get_subcommands().filter(|it| it.get_name() != "help");
        subcommands.for_each(|it| runnable(&format!("{name} "), it, found));
    } else {
        found.push((name, command.clone()));
    }
}

fn commands() -> Vec<(String, Command)> {
    let mut root = Cli::command();
    // Global flags reach the subcommands when the commands are built.
    root.build();
    let mut found = Vec::new();
    runnable("", &root, &mut found);
    assert!(found.len() > 40, "{} commands", found.len());
    found
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_an_example() {
    let has_example = |name: &str, command: &Command| {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        help.contains("Example") && help.contains(name)
    };
    let commands = commands();
    let missing: Vec<_> =
        commands.iter().filter(|(name, it)| !has_example(name, it)).map(|(name, _)| name).collect();
    assert!(missing.is_empty(), "without an example: {missing:#?}");
}

#[test]
fn every_command_can_print_json() {
    let has_json = |command: &Command| command.get_arguments().any(|it| it.get_id() == "json");
    let commands = commands();
    let mut missing: Vec<_> =
        commands.iter().filter(|(_, it)| !has_json(it)).map(|(name, _)| name).collect();
    missing.sort_unstable();
    assert_eq!(missing, WITHOUT_JSON);
}

/// clap wraps texts. It would also break a longer example, which could then not be copied.
#[test]
fn help_fits_eighty_columns() {
    for (name, mut command) in commands() {
        let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let help = command.render_long_help().to_string();
        for line in examples.lines().chain(help.lines()) {
            let columns = line.chars().count();
            assert!(columns <= 80, "{name}: {columns} columns\n{line}");
        }
    }
}

#[test]
fn every_argument_has_a_description() {
    for (name, command) in commands() {
        let arguments = command.get_arguments().filter(|it| it.get_help().is_none());
        let missing: Vec<_> = arguments.map(|it| it.get_id().to_string()).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}

/// clap wraps paragraphs. A line break inside one would end a line in the middle of a sentence.
#[test]
fn a_description_has_no_line_breaks_inside_a_paragraph() {
    for (name, command) in commands() {
        let about = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        for paragraph in about.split("\n\n") {
            assert!(!paragraph.trim().contains('\n'), "{name}: {paragraph}");
        }
    }
}

#[test]
fn every_example_is_a_valid_command_line() {
    for (name, command) in commands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let help = help.replace("\\\n", "");
        for line in help.lines().map(str::trim).filter(|line| line.starts_with(&name)) {
            let is_whole = !line.contains(['<', '>', '|', '$', '…', '(']);
            let words = shell_words(line);
            if is_whole && let Err(error) = Cli::command().try_get_matches_from(words) {
                panic!("{line}: {error}");
            }
        }
    }
}

/// The error comes before the first request, which would fail because no service runs.
#[tokio::test]
async fn a_period_that_ends_before_it_starts_is_a_usage_error() {
    let is_time = |it: &&Arg| it.get_value_names().is_some_and(|names| names == ["TIME"]);
    let has = |command: &Command, name: &str| {
        command.get_arguments().filter(is_time).any(|it| it.get_id() == name)
    };
    let commands = commands().into_iter().filter(|(_, it)| has(it, "from") && has(it, "to"));
    let names: Vec<_> = commands.map(|(name, _)| name).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        let line = format!("{name} --from 2026-11-08 --to 2026-11-01");
        let cli = Cli::try_parse_from(shell_words(&line)).unwrap();
        let error = Box::pin(run(cli.command)).await.unwrap_err();
        assert!(error.is::<UsageError>(), "{name}: {error}");
        let expected = "--from 2026-11-08 is not before --to 2026-11-01";
        assert_eq!(error.to_string(), expected, "{name}");
    }
}

/// Splits a line at spaces outside single quotes.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for next in line.chars() {
        match (next, words.last_mut()) {
            ('\'', _) => is_quoted = !is_quoted,
            (' ', _) if !is_quoted => words.push(String::new()),
            (other, Some(word)) => word.push(other),
            (_, None) => {}
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

/// The Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn only_the_terminal_writer_writes_to_the_terminal() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let allowed =
        ["output/terminal.rs", "output/layout.rs", "tests.rs"].map(|path| root.join(path));
    for file in files.iter().filter(|file| !allowed.contains(file)) {
        let text = fs::read_to_string(file).unwrap();
        for direct in ["print!(", "println!(", "io::stdout()", "io::stderr()", "dbg!("] {
            assert!(!text.contains(direct), "{} uses {direct}", file.display());
        }
    }
    assert!(files.len() > 80, "{} files", files.len());
}

/// A command with a value is made by `output::command`, which quotes the value.
#[test]
fn suggested_commands_have_no_values_that_are_not_quoted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let allowed = ["output/shell.rs", "tests.rs"].map(|path| root.join(path));
    for file in files.iter().filter(|file| !allowed.contains(file)) {
        let text = fs::read_to_string(file).unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for (_, suggested) in lines.filter_map(|line| line.split_once("backhaul ")) {
            assert!(!suggested.contains('{'), "{}: {suggested}", file.display());
        }
    }
}
