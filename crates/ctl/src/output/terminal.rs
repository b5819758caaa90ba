//! The only writer to standard output and standard error.
//!
//! Responses, files and arguments contain texts of others. A control character can move the cursor or
//! change the terminal, and a bidirectional one can make an identifier look like another.

use std::io::{self, ErrorKind, IsTerminal as _, Write};

use domain::printable::is_printable;
use serde_json::Value;

/// Prints to standard output without control characters. A closed pipe is not an error.
pub fn print(text: &str) -> io::Result<()> {
    print_own(&printable_lines(text))
}

/// Prints JSON to standard output. Characters that a terminal could interpret are escaped, so the values
/// stay as they are.
pub(crate) fn print_json(value: &Value) -> io::Result<()> {
    print_own(&format!("{}\n", escaped(&format!("{value:#}"))))
}

/// Prints a text of this program to standard output, as it is.
pub(crate) fn print_own(text: &str) -> io::Result<()> {
    write_own(|out| out.write_all(text.as_bytes()))
}

/// Writes texts of this program to standard output, as they are. A closed pipe is not an error.
pub(crate) fn write_own(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Prints a line to standard error without control characters. Nobody can be told that it cannot be written.
pub(crate) fn message(text: &str) {
    writeln!(io::stderr(), "{}", printable_lines(text)).ok();
}

pub(crate) fn is_stderr_terminal() -> bool {
    io::stderr().is_terminal()
}

pub(super) fn is_stdout_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Replaces the characters that a terminal could interpret, except line breaks.
fn printable_lines(text: &str) -> String {
    let replace =
        |c: char| if is_printable(c) || c == '\n' { c } else { char::REPLACEMENT_CHARACTER };
    text.chars().map(replace).collect()
}

/// Escapes the characters of a JSON text that a terminal could interpret. Outside strings, line breaks are
/// the only ones that JSON allows here.
fn escaped(json: &str) -> String {
    let escape = |c: char| match c {
        c if !is_printable(c) && c != '\n' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    json.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use domain::printable::printable;
    use serde_json::json;

    use super::*;

    /// One character of each range.
    const UNSAFE: [char; 13] = [
        '\u{0}', '\u{1b}', '\r', '\t', '\u{7f}', '\u{80}', '\u{9b}', '\u{9f}', '\u{61c}',
        '\u{200e}', '\u{202a}', '\u{202e}', '\u{2069}',
    ];

    #[test]
    fn characters_that_a_terminal_interprets_are_replaced() {
        for c in UNSAFE {
            assert_eq!(printable(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
            assert_eq!(printable_lines(&format!("a\n{c}b\n")), "a\n\u{fffd}b\n", "{c:?}");
        }
        assert_eq!(printable_lines("Größe 15 €\u{a0}\n"), "Größe 15 €\u{a0}\n");
    }

    #[test]
    fn json_keeps_its_values() {
        let texts: Vec<_> = UNSAFE.iter().map(|c| format!("a\n{c}\"")).collect();
        let value = json!({ "texts": texts });
        let shown = escaped(&format!("{value:#}"));
        assert!(!shown.chars().any(|c| !is_printable(c) && c != '\n'), "{shown:?}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
        assert!(shown.contains("\\u009b") && shown.contains("\\u202e"), "{shown}");
    }
}
