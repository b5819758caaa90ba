//! Suggested commands.

use domain::printable::one_line;

/// A command of this program for a POSIX shell, in one line. Merchants choose identifiers, and readers paste the
/// commands.
pub(crate) fn command(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| shell_word(&one_line(word))).collect();
    format!("backhaul {}", words.join(" "))
}

/// A text as one word of a command.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_the_same_text() {
        assert_eq!(shell_word("inbound_asn:ASN-1_2"), "inbound_asn:ASN-1_2");
        for text in [
            "",
            " ",
            "ASN1;touch$IFS/x",
            "$(id)",
            "`id`",
            "it's",
            "a\"b",
            "a\\b",
            "*",
            "~",
            "#x",
            "a\nb",
            "{a,b}",
            "a&b|c>d<e",
            "!x",
            "=ls",
            "ä",
        ] {
            let printed = format!("printf %s {}", shell_word(text));
            let output = Command::new("sh").args(["-c", &printed]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }

    #[test]
    fn each_word_of_a_command_is_quoted() {
        let suggested = command(&["deliveries", "show", "a;b"]);
        assert_eq!(suggested, "backhaul deliveries show 'a;b'");
        assert_eq!(command(&["a\nb"]), r"backhaul 'a\nb'");
    }
}
