//! Settings of the command line: environment variables first, then a settings file.
//!
//! `$BACKHAUL_SETTINGS` names the file. The default is `.run/env` of the checkout that contains the
//! current folder, which `scripts/run` writes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::output::file_name;

const SETTINGS_FILE: &str = "BACKHAUL_SETTINGS";

/// The environment and the settings file.
#[derive(Debug, Default)]
pub struct Settings {
    environment: HashMap<String, String>,
    file: HashMap<String, String>,
    /// The checkout around the current folder, unless `$BACKHAUL_SETTINGS` is set.
    checkout: Option<PathBuf>,
}

/// A required setting that has no value.
#[derive(Debug, thiserror::Error)]
#[error("{description} is not set: set {name}{}{hint}", or_pass(*flag))]
pub struct MissingSetting {
    description: &'static str,
    name: &'static str,
    flag: Option<&'static str>,
    hint: String,
}

fn or_pass(flag: Option<&str>) -> String {
    flag.map(|flag| format!(" or pass {flag}")).unwrap_or_default()
}

/// An environment variable, the flag that overrides it, and a description for error messages.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    pub flag: Option<&'static str>,
    pub description: &'static str,
}

impl Setting {
    pub const fn with_flag(self, flag: &'static str) -> Self {
        Self { flag: Some(flag), ..self }
    }

    pub const fn without_flag(self) -> Self {
        Self { flag: None, ..self }
    }
}

impl Settings {
    pub fn load() -> anyhow::Result<Self> {
        let current_dir = std::env::current_dir().context("cannot find the current folder")?;
        let utf8 = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::new(std::env::vars_os().filter_map(utf8).collect(), &current_dir)
    }

    fn new(environment: HashMap<String, String>, current_dir: &Path) -> anyhow::Result<Self> {
        if let Some(file) = environment.get(SETTINGS_FILE).filter(|file| !file.is_empty()) {
            let file = Self::read(Path::new(file))?;
            return Ok(Self { environment, file, checkout: None });
        }
        let checkout = current_dir.ancestors().find(|folder| folder.join("scripts/run").is_file());
        // The file exists only while the stack is running.
        let file = checkout.map(|folder| folder.join(".run/env")).filter(|file| file.exists());
        let file = file.as_deref().map(Self::read).transpose()?.unwrap_or_default();
        Ok(Self { environment, file, checkout: checkout.map(Path::to_owned) })
    }

    pub fn read(file: &Path) -> anyhow::Result<HashMap<String, String>> {
        let text = fs::read_to_string(file).map_err(anyhow::Error::from);
        text.and_then(|text| parse(&text))
            .with_context(|| format!("cannot read {}", file_name(file)))
    }

    /// Overrides the given values.
    #[must_use]
    pub fn with(mut self, values: HashMap<String, String>) -> Self {
        self.environment.extend(values);
        self
    }

    /// The value of a setting. An empty value counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        let values = [self.environment.get(name), self.file.get(name)];
        values.into_iter().flatten().map(String::as_str).find(|value| !value.is_empty())
    }

    pub fn require(&self, setting: Setting) -> Result<&str, MissingSetting> {
        let Setting { name, flag, description } = setting;
        let hint = || match &self.checkout {
            Some(path) => format!(", or start the stack in {} with scripts/run", file_name(path)),
            None => String::new(),
        };
        self.get(name).ok_or_else(|| MissingSetting { description, name, flag, hint: hint() })
    }
}

fn parse(text: &str) -> anyhow::Result<HashMap<String, String>> {
    let mut values = HashMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=').and_then(|(n, v)| Some((n, unquote(v)?)))
        else {
            bail!("line {number} is not NAME=VALUE");
        };
        values.insert(name.to_owned(), value);
    }
    Ok(values)
}

/// Resolves quotes and backslashes as a shell does. Nothing is expanded.
fn unquote(word: &str) -> Option<String> {
    let mut value = String::new();
    let mut quote = None;
    let mut chars = word.chars().peekable();
    while let Some(next) = chars.next() {
        match (quote, next) {
            (Some(open), _) if next == open => quote = None,
            (None, '\'' | '"') => quote = Some(next),
            (None, '\\') => value.push(chars.next()?),
            // Before other characters, a backslash between double quotes stands for itself.
            (Some('"'), '\\') => {
                let escaped = chars.next_if(|next| matches!(next, '"' | '\\' | '$' | '`'));
                value.push(escaped.unwrap_or('\\'));
            }
            _ => value.push(next),
        }
    }
    quote.is_none().then_some(value)
}

/// Reads a text file; `-` is standard input.
pub(crate) fn read_text(file: &Path) -> anyhow::Result<String> {
    let text = if file == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(file)
    };
    text.with_context(|| format!("cannot read {}", file_name(file)))
}

/// Reads a secret from a file and strips the final line break.
pub(crate) fn read_secret(file: &Path) -> anyhow::Result<String> {
    let text = read_text(file)?;
    let secret = text.strip_suffix('\n').unwrap_or(&text);
    let secret = secret.strip_suffix('\r').unwrap_or(secret);
    if secret.is_empty() {
        bail!("the secret file {} is empty", file_name(file));
    }
    Ok(secret.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTH: Setting =
        Setting { name: "AUTH_URL", flag: Some("--auth-url"), description: "the auth URL" };

    fn environment(values: &[(&str, &str)]) -> HashMap<String, String> {
        values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_environment_overrides_the_checkout() {
        let checkout = tempfile::tempdir().unwrap();
        let inside = checkout.path().join("crates/x");
        for folder in ["crates/x", "scripts", ".run"] {
            fs::create_dir_all(checkout.path().join(folder)).unwrap();
        }
        fs::write(checkout.path().join("scripts/run"), "").unwrap();
        let settings = Settings::new(HashMap::new(), &inside).unwrap();
        assert_eq!(
            settings.require(AUTH).unwrap_err().to_string(),
            format!(
                "the auth URL is not set: set AUTH_URL or pass --auth-url, or start the stack in {} \
                 with scripts/run",
                checkout.path().display()
            )
        );
        fs::write(checkout.path().join(".run/env"), "export AUTH_URL=file\nCLIENT_ID='o'\\''k'\n")
            .unwrap();
        let variables = environment(&[("AUTH_URL", "environment"), ("CLIENT_ID", "")]);
        let settings = Settings::new(variables, &inside).unwrap();
        assert_eq!(settings.require(AUTH).unwrap(), "environment");
        assert_eq!(settings.get("CLIENT_ID"), Some("o'k"));
        let settings = Settings::new(HashMap::new(), &inside).unwrap();
        assert_eq!(settings.get("AUTH_URL"), Some("file"));
    }

    #[test]
    fn outside_a_checkout_only_the_environment_is_read() {
        let elsewhere = tempfile::tempdir().unwrap();
        let settings = Settings::new(HashMap::new(), elsewhere.path()).unwrap();
        assert_eq!(
            settings.require(AUTH).unwrap_err().to_string(),
            "the auth URL is not set: set AUTH_URL or pass --auth-url"
        );
        assert_eq!(
            settings.require(AUTH.without_flag()).unwrap_err().to_string(),
            "the auth URL is not set: set AUTH_URL"
        );
    }

    #[test]
    fn a_named_settings_file_replaces_that_of_the_checkout() {
        let folder = tempfile::tempdir().unwrap();
        for inside in ["scripts", ".run"] {
            fs::create_dir(folder.path().join(inside)).unwrap();
        }
        fs::write(folder.path().join("scripts/run"), "").unwrap();
        fs::write(folder.path().join(".run/env"), "AUTH_URL=checkout\nCLIENT_ID=1\n").unwrap();
        let named = folder.path().join("named");
        let load = || {
            let variables = environment(&[(SETTINGS_FILE, named.to_str().unwrap())]);
            Settings::new(variables, folder.path())
        };
        let message = format!("cannot read {}", named.display());
        assert_eq!(load().unwrap_err().to_string(), message);
        fs::write(&named, "AUTH_URL=named\n").unwrap();
        let settings = load().unwrap();
        assert_eq!((settings.get("AUTH_URL"), settings.get("CLIENT_ID")), (Some("named"), None));
        let settings = settings.with(environment(&[("AUTH_URL", "override")]));
        assert_eq!(settings.get("AUTH_URL"), Some("override"));
    }

    #[test]
    fn a_line_without_a_setting_is_an_error() {
        assert_eq!(parse("# x\n\nA=1\nB\n").unwrap_err().to_string(), "line 4 is not NAME=VALUE");
        for open in ["A='1\n", "A=\"1\n", "A=\"1'\n", "A=1\\\n"] {
            assert_eq!(parse(open).unwrap_err().to_string(), "line 1 is not NAME=VALUE", "{open}");
        }
    }

    #[test]
    fn values_are_quoted_as_in_a_shell() {
        for (line, value) in [
            (r#"export A="http://auth.example:8080""#, "http://auth.example:8080"),
            (r#"A="o'k""#, "o'k"),
            (r#"A='say "yes"'"#, r#"say "yes""#),
            (r#"A=1' 2'" 3"\ 4"#, "1 2 3 4"),
            (r#"A="\"\\\$\`\n\'""#, r#""\$`\n\'"#),
            (r#"A='\"'"#, r#"\""#),
            (r#"A="""#, ""),
        ] {
            assert_eq!(parse(line).unwrap()["A"], value, "{line}");
        }
    }
}
