//! Where the services are and who is calling, unless a flag says so: the environment, and behind
//! it a file, which is the `.run/env` of the checkout we were started in unless the environment
//! names another.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// The setting that names the file.
const FILE: &str = "BACKHAUL_SETTINGS";

/// What the environment and the file say.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    environment: HashMap<String, String>,
    file: HashMap<String, String>,
    /// A working copy of the project around the current folder, if it is the one that counts.
    checkout: Option<PathBuf>,
}

/// A setting that nobody gave.
#[derive(Debug, thiserror::Error)]
#[error("{what} is not known: set {name}{}{hint}", or_give(*flag))]
pub(crate) struct Missing {
    what: &'static str,
    name: &'static str,
    flag: Option<&'static str>,
    hint: String,
}

fn or_give(flag: Option<&str>) -> String {
    flag.map(|flag| format!(" or give {flag}")).unwrap_or_default()
}

/// One thing that can be set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    /// What says so instead, where the command has such a flag.
    pub(crate) flag: Option<&'static str>,
    pub(crate) what: &'static str,
}

impl Setting {
    /// The same for a command that has another flag for it.
    pub(crate) const fn by(self, flag: &'static str) -> Self {
        Self { flag: Some(flag), ..self }
    }

    /// The same for a command that has no flag for it.
    pub(crate) const fn without_flag(self) -> Self {
        Self { flag: None, ..self }
    }
}

impl Settings {
    pub(crate) fn load() -> anyhow::Result<Self> {
        let here = std::env::current_dir().context("the current folder")?;
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::new(std::env::vars_os().filter_map(text).collect(), &here)
    }

    fn new(environment: HashMap<String, String>, here: &Path) -> anyhow::Result<Self> {
        if let Some(file) = environment.get(FILE).filter(|file| !file.is_empty()) {
            let file = Self::read(Path::new(file))?;
            return Ok(Self { environment, file, checkout: None });
        }
        let checkout = here.ancestors().find(|folder| folder.join("scripts/run").is_file());
        // What its running stack wrote; there is none while it is stopped.
        let file = checkout.map(|folder| folder.join(".run/env")).filter(|file| file.exists());
        let file = file.as_deref().map(Self::read).transpose()?.unwrap_or_default();
        Ok(Self { environment, file, checkout: checkout.map(Path::to_owned) })
    }

    /// What a file of settings says.
    pub(crate) fn read(file: &Path) -> anyhow::Result<HashMap<String, String>> {
        let text = fs::read_to_string(file).map_err(anyhow::Error::from);
        text.and_then(|text| parse(&text))
            .with_context(|| format!("{} cannot be read", file.display()))
    }

    /// The same settings but for these values.
    pub(crate) fn with(mut self, values: HashMap<String, String>) -> Self {
        self.environment.extend(values);
        self
    }

    /// The value of a setting; an empty one counts as none.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        let values = [self.environment.get(name), self.file.get(name)];
        values.into_iter().flatten().map(String::as_str).find(|value| !value.is_empty())
    }

    pub(crate) fn need(&self, setting: Setting) -> Result<&str, Missing> {
        let Setting { name, flag, what } = setting;
        let hint = || match &self.checkout {
            Some(path) => format!(", or start the stack of {} with scripts/run", path.display()),
            None => String::new(),
        };
        self.find(name).ok_or_else(|| Missing { what, name, flag, hint: hint() })
    }
}

fn parse(text: &str) -> anyhow::Result<HashMap<String, String>> {
    let mut values = HashMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, value)) = line.split_once('=').and_then(|(n, v)| Some((n, unquoted(v)?)))
        else {
            bail!("line {number} is not NAME=VALUE");
        };
        values.insert(name.to_owned(), value);
    }
    Ok(values)
}

/// What a shell makes of a word that is plain or in single quotes.
fn unquoted(word: &str) -> Option<String> {
    let (mut value, mut inside, mut chars) = (String::new(), false, word.chars());
    while let Some(next) = chars.next() {
        match next {
            '\'' => inside = !inside,
            '\\' if !inside => value.push(chars.next()?),
            _ => value.push(next),
        }
    }
    (!inside).then_some(value)
}

/// What a file says, `-` being standard input.
pub(crate) fn read_text(file: &Path) -> anyhow::Result<String> {
    let text = if file == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(file)
    };
    text.with_context(|| format!("{} cannot be read", file.display()))
}

/// A secret from a file, without the line break it ends with.
pub(crate) fn read_secret(file: &Path) -> anyhow::Result<String> {
    let text = read_text(file).context("no secret")?;
    let secret = text.strip_suffix('\n').unwrap_or(&text);
    let secret = secret.strip_suffix('\r').unwrap_or(secret);
    if secret.is_empty() {
        bail!("no secret from {}: it is empty", file.display());
    }
    Ok(secret.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTH: Setting =
        Setting { name: "AUTH_URL", flag: Some("--auth-url"), what: "the address of auth" };

    fn environment(values: &[(&str, &str)]) -> HashMap<String, String> {
        values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_environment_wins_over_the_checkout() {
        let checkout = tempfile::tempdir().unwrap();
        let inside = checkout.path().join("crates/x");
        for folder in ["crates/x", "scripts", ".run"] {
            fs::create_dir_all(checkout.path().join(folder)).unwrap();
        }
        fs::write(checkout.path().join("scripts/run"), "").unwrap();
        let settings = Settings::new(HashMap::new(), &inside).unwrap();
        assert_eq!(
            settings.need(AUTH).unwrap_err().to_string(),
            format!(
                "the address of auth is not known: set AUTH_URL or give --auth-url, or start the \
                 stack of {} with scripts/run",
                checkout.path().display()
            )
        );
        fs::write(checkout.path().join(".run/env"), "AUTH_URL=file\nCLIENT_ID='o'\\''k'\n")
            .unwrap();
        let given = environment(&[("AUTH_URL", "environment"), ("CLIENT_ID", "")]);
        let settings = Settings::new(given, &inside).unwrap();
        assert_eq!(settings.need(AUTH).unwrap(), "environment");
        assert_eq!(settings.find("CLIENT_ID"), Some("o'k"));
        let settings = Settings::new(HashMap::new(), &inside).unwrap();
        assert_eq!(settings.find("AUTH_URL"), Some("file"));
    }

    #[test]
    fn outside_a_checkout_only_the_environment_counts() {
        let elsewhere = tempfile::tempdir().unwrap();
        let settings = Settings::new(HashMap::new(), elsewhere.path()).unwrap();
        assert_eq!(
            settings.need(AUTH).unwrap_err().to_string(),
            "the address of auth is not known: set AUTH_URL or give --auth-url"
        );
        assert_eq!(
            settings.need(AUTH.without_flag()).unwrap_err().to_string(),
            "the address of auth is not known: set AUTH_URL"
        );
    }

    #[test]
    fn a_named_file_counts_instead_of_the_checkout() {
        let folder = tempfile::tempdir().unwrap();
        for inside in ["scripts", ".run"] {
            fs::create_dir(folder.path().join(inside)).unwrap();
        }
        fs::write(folder.path().join("scripts/run"), "").unwrap();
        fs::write(folder.path().join(".run/env"), "AUTH_URL=checkout\nCLIENT_ID=1\n").unwrap();
        let named = folder.path().join("named");
        let load = || {
            let given = environment(&[(FILE, named.to_str().unwrap())]);
            Settings::new(given, folder.path())
        };
        let complaint = format!("{} cannot be read", named.display());
        assert_eq!(load().unwrap_err().to_string(), complaint);
        fs::write(&named, "AUTH_URL=named\n").unwrap();
        let settings = load().unwrap();
        assert_eq!((settings.find("AUTH_URL"), settings.find("CLIENT_ID")), (Some("named"), None));
        let settings = settings.with(environment(&[("AUTH_URL", "mine")]));
        assert_eq!(settings.find("AUTH_URL"), Some("mine"));
    }

    #[test]
    fn a_line_that_is_no_setting_is_an_error() {
        assert_eq!(parse("# x\n\nA=1\nB\n").unwrap_err().to_string(), "line 4 is not NAME=VALUE");
        assert_eq!(parse("A='1\n").unwrap_err().to_string(), "line 1 is not NAME=VALUE");
    }
}
