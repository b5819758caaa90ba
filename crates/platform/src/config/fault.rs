//! Faults in settings, in plain words.

use std::fmt;

use config::{ConfigError, ValueKind};

use super::Table;

/// All faults of the settings of a service.
pub struct Faults {
    service: String,
    /// Settings outside of sections, such as `public_url`.
    without_section: Vec<String>,
    faults: Vec<Fault>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The name of the setting, such as `http.port`, or of a section. Empty for a fault of a whole file.
    pub(super) path: String,
    pub(super) reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    Missing,
    Unknown,
    Wrong(String),
}

impl Faults {
    pub(crate) fn new(service: &str) -> Self {
        Self { service: service.to_owned(), without_section: Vec::new(), faults: Vec::new() }
    }

    /// Remembers which of the given settings are outside of sections.
    pub(crate) fn set_given(&mut self, given: &Table) {
        let values = given.iter().filter(|(_, value)| !matches!(value.kind, ValueKind::Table(_)));
        self.without_section = values.map(|(name, _)| name.clone()).collect();
    }

    pub(crate) fn service(&self) -> &str {
        &self.service
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds the error of a check of a section. A section with a fault was repaired, so the check of it found
    /// nothing real.
    pub(crate) fn add_check(&mut self, section: &str, checked: anyhow::Result<()>) {
        let is_in_section = |fault: &Fault| fault.path.split('.').next() == Some(section);
        if let Err(error) = checked
            && !self.faults.iter().any(is_in_section)
        {
            self.push(Fault::at("", &format!("{error:#}")));
        }
    }

    /// Adds a fault. Returns whether it is new.
    pub(crate) fn push(&mut self, fault: Fault) -> bool {
        let is_new = !self.faults.contains(&fault);
        if is_new {
            self.faults.push(fault);
        }
        is_new
    }

    /// The environment variable of a setting; `*` stands for the settings of a section.
    fn variable(&self, path: &str) -> String {
        let prefix = self.service.replace('-', "_");
        let is_setting = path.contains('.') || self.without_section.iter().any(|it| it == path);
        let rest = if is_setting { "" } else { "__*" };
        format!("{prefix}__{}{rest}", path.replace('.', "__")).to_uppercase()
    }
}

impl std::error::Error for Faults {}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Sections are read in no particular order.
        let mut faults: Vec<_> = self.faults.iter().collect();
        faults.sort_by(|a, b| a.path.cmp(&b.path));
        match faults.len() {
            1 => write!(f, "one setting of {} is wrong:", self.service)?,
            number => write!(f, "{number} settings of {} are wrong:", self.service)?,
        }
        for Fault { path, reason } in faults {
            if path.is_empty() {
                write!(f, "\n  {reason}")?;
            } else {
                write!(f, "\n  {path} ({}): {reason}", self.variable(path))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is required and not set"),
            Self::Unknown => f.write_str("does not exist; `defaults` prints all settings"),
            Self::Wrong(reason) => f.write_str(reason),
        }
    }
}

impl From<ConfigError> for Fault {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::NotFound(path) => Self { path, reason: Reason::Missing },
            ConfigError::Type { unexpected, expected, key, .. } => Self {
                path: without_index(key.unwrap_or_default()),
                reason: Reason::Wrong(must_be(expected, &unexpected.to_string())),
            },
            ConfigError::At { error, key, .. } => {
                Self::at(&without_index(key.unwrap_or_default()), &error.to_string())
            }
            other => Self::at("", &other.to_string()),
        }
    }
}

impl Fault {
    /// The same fault, of the whole section.
    pub(super) fn of_section(&self) -> Self {
        let section = self.path.split('.').next().unwrap_or_default();
        Self { path: section.to_owned(), reason: Reason::Wrong(String::new()) }
    }

    /// A fault of the setting or section at `path`. A text that starts with the name of a setting is
    /// about that setting.
    fn at(path: &str, text: &str) -> Self {
        if let Some(name) = unknown_field(text) {
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            return Self { path, reason: Reason::Unknown };
        }
        let (path, text) = match text.split_once(' ') {
            Some((name, rest)) if is_setting(name) && name.starts_with(path) => (name, rest),
            _ => (path, text),
        };
        Self { path: path.to_owned(), reason: Reason::Wrong(plain(text)) }
    }
}

/// Whether a word is the name of a setting, such as `http.port`.
fn is_setting(word: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase()) && part.chars().all(is_letter)
    };
    word.contains('.') && word.split('.').all(is_name)
}

fn without_index(mut path: String) -> String {
    path.truncate(path.find('[').unwrap_or(path.len()));
    path
}

fn unknown_field(text: &str) -> Option<&str> {
    text.strip_prefix("unknown field `")?.split_once('`').map(|(name, _)| name)
}

/// The text of an error without the names of types.
fn plain(text: &str) -> String {
    if text.contains("untagged enum Written") {
        return "must be a list".to_owned();
    }
    if let Some((_, value)) = text.split_once(" does not have variant constructor ") {
        return format!("{value:?} is not a possible value; `defaults` prints the possible ones");
    }
    let found = text.strip_prefix("invalid value: ").or(text.strip_prefix("invalid type: "));
    match found.and_then(|rest| rest.split_once(", expected ")) {
        Some((found, expected)) => must_be(expected, found),
        None => text.to_owned(),
    }
}

fn must_be(expected: &str, found: &str) -> String {
    let expected = match expected {
        "a boolean" => "true or false",
        "a duration" => "a duration such as \"30s\" or \"5min\"",
        "a floating point" => "a number",
        "a string" => "a text",
        "an unsigned 16 bit integer" | "u16" => "a whole number from 0 to 65535",
        "an unsigned 32 bit integer" => "a whole number up to 4294967295",
        "parsable string" => "a size such as 64MiB",
        _ if expected.starts_with("a nonzero") => "a whole number above 0",
        _ if expected.contains("unsigned") => "a whole number that is not negative",
        _ if expected.contains("integer") => "a whole number",
        _ if expected.contains("map") || expected.starts_with("struct") => "a section",
        other => other,
    };
    // The value is quoted; the name of its type is before it.
    let found = match found.find(['`', '"']).and_then(|start| found.get(start..)) {
        Some(value) => value.trim_matches('`'),
        None if found == "sequence" => "a list",
        None if found == "map" => "a section",
        None => found,
    };
    format!("must be {expected}, not {found}")
}
