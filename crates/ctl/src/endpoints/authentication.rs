//! What a merchant's side asks of us, from the command line.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use domain::merchant::{Authentication, CredentialsIn};

use crate::Usage;
use crate::settings::read_secret;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    None,
    Basic,
    Bearer,
    ApiKey,
    Oauth2,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Basic => "basic",
            Self::Bearer => "bearer",
            Self::ApiKey => "api-key",
            Self::Oauth2 => "oauth2",
        })
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Place {
    Body,
    Basic,
}

/// Secrets are better read from a file or from standard input (-): other users of this machine
/// can read its command lines.
#[derive(Args)]
#[command(next_help_heading = "Authentication")]
pub(super) struct Flags {
    /// What the merchant's side asks for
    #[arg(long, value_name = "KIND", default_value_t = Kind::None)]
    auth: Kind,
    /// basic: the user
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// basic: the password
    #[arg(long)]
    password: Option<String>,
    /// basic: a file with the password, - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "password")]
    password_file: Option<PathBuf>,
    /// bearer: the token
    #[arg(long)]
    token: Option<String>,
    /// bearer: a file with the token, - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    /// api-key: the header that carries the key
    #[arg(long, value_name = "NAME")]
    key_header: Option<String>,
    /// api-key: the key
    #[arg(long)]
    key: Option<String>,
    /// api-key: a file with the key, - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    key_file: Option<PathBuf>,
    /// oauth2: where tokens come from
    #[arg(long, value_name = "URL")]
    token_url: Option<String>,
    /// oauth2: the client we are
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// oauth2: the client's secret
    #[arg(long, value_name = "SECRET")]
    client_secret: Option<String>,
    /// oauth2: a file with the client's secret, - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "client_secret")]
    client_secret_file: Option<PathBuf>,
    /// oauth2: the scope to ask for
    #[arg(long)]
    scope: Option<String>,
    /// oauth2: where a token request carries the client's credentials; basic unless given
    #[arg(long, value_name = "PLACE")]
    credentials_in: Option<Place>,
}

impl Flags {
    /// What was said, complete and with nothing that does not belong to its kind.
    pub(super) fn read(self) -> anyhow::Result<Authentication<String>> {
        self.refuse_strays()?;
        let kind = self.auth;
        Ok(match kind {
            Kind::None => Authentication::None,
            Kind::Basic => Authentication::Basic {
                username: needed(self.username, kind, "--username")?,
                password: secret(self.password, self.password_file, kind, "--password-file")?,
            },
            Kind::Bearer => Authentication::Bearer {
                token: secret(self.token, self.token_file, kind, "--token-file")?,
            },
            Kind::ApiKey => Authentication::ApiKey {
                header: needed(self.key_header, kind, "--key-header")?,
                key: secret(self.key, self.key_file, kind, "--key-file")?,
            },
            Kind::Oauth2 => Authentication::Oauth2 {
                token_url: needed(self.token_url, kind, "--token-url")?,
                client_id: needed(self.client_id, kind, "--client-id")?,
                client_secret: secret(
                    self.client_secret,
                    self.client_secret_file,
                    kind,
                    "--client-secret-file",
                )?,
                scope: self.scope,
                credentials_in: match self.credentials_in {
                    Some(Place::Body) => CredentialsIn::Body,
                    Some(Place::Basic) | None => CredentialsIn::Basic,
                },
            },
        })
    }

    fn refuse_strays(&self) -> Result<(), Usage> {
        let given = [
            ("--username", self.username.is_some(), Kind::Basic),
            ("--password", self.password.is_some(), Kind::Basic),
            ("--password-file", self.password_file.is_some(), Kind::Basic),
            ("--token", self.token.is_some(), Kind::Bearer),
            ("--token-file", self.token_file.is_some(), Kind::Bearer),
            ("--key-header", self.key_header.is_some(), Kind::ApiKey),
            ("--key", self.key.is_some(), Kind::ApiKey),
            ("--key-file", self.key_file.is_some(), Kind::ApiKey),
            ("--token-url", self.token_url.is_some(), Kind::Oauth2),
            ("--client-id", self.client_id.is_some(), Kind::Oauth2),
            ("--client-secret", self.client_secret.is_some(), Kind::Oauth2),
            ("--client-secret-file", self.client_secret_file.is_some(), Kind::Oauth2),
            ("--scope", self.scope.is_some(), Kind::Oauth2),
            ("--credentials-in", self.credentials_in.is_some(), Kind::Oauth2),
        ];
        match given.into_iter().find(|(_, given, kind)| *given && *kind != self.auth) {
            Some((flag, _, kind)) => Err(Usage(format!("{flag} goes with --auth {kind}"))),
            None => Ok(()),
        }
    }
}

fn needed(value: Option<String>, kind: Kind, flag: &str) -> Result<String, Usage> {
    value.ok_or_else(|| Usage(format!("--auth {kind} needs {flag}")))
}

fn secret(
    given: Option<String>,
    file: Option<PathBuf>,
    kind: Kind,
    flag: &str,
) -> anyhow::Result<String> {
    match file {
        Some(file) => read_secret(&file),
        None => Ok(needed(given, kind, flag)?),
    }
}

pub(super) fn name<S>(authentication: &Authentication<S>) -> &'static str {
    match authentication {
        Authentication::None => "none",
        Authentication::Basic { .. } => "basic",
        Authentication::Bearer { .. } => "bearer",
        Authentication::ApiKey { .. } => "api-key",
        Authentication::Oauth2 { .. } => "oauth2",
    }
}

/// The kind and what else may be shown.
pub(super) fn describe<S>(authentication: &Authentication<S>) -> String {
    let name = name(authentication);
    match authentication {
        Authentication::None | Authentication::Bearer { .. } => name.to_owned(),
        Authentication::Basic { username, .. } => format!("{name}, as {username}"),
        Authentication::ApiKey { header, .. } => format!("{name}, in {header}"),
        Authentication::Oauth2 { token_url, client_id, .. } => {
            format!("{name}, as {client_id} at {token_url}")
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    #[track_caller]
    fn check(line: &str, expected: Result<&str, &str>) {
        let line = Line::try_parse_from(format!("x {line}").split_whitespace()).unwrap();
        let read = line.flags.read().map(|read| serde_json::to_string(&read).unwrap());
        let read = read.map_err(|error| error.to_string());
        assert_eq!(read.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn every_kind_takes_what_belongs_to_it_and_nothing_else() {
        check("", Ok(r#"{"kind":"none"}"#));
        check(
            "--auth basic --username u --password p",
            Ok(r#"{"kind":"basic","username":"u","password":"p"}"#),
        );
        check("--auth bearer --token t", Ok(r#"{"kind":"bearer","token":"t"}"#));
        check(
            "--auth api-key --key-header x-key --key k",
            Ok(r#"{"kind":"api_key","header":"x-key","key":"k"}"#),
        );
        check(
            "--auth oauth2 --token-url https://x --client-id c --client-secret s",
            Ok(
                r#"{"kind":"oauth2","token_url":"https://x","client_id":"c","client_secret":"s","scope":null,"credentials_in":"basic"}"#,
            ),
        );
        check("--auth basic --username u", Err("--auth basic needs --password-file"));
        check("--auth oauth2", Err("--auth oauth2 needs --token-url"));
        check("--username u --password p", Err("--username goes with --auth basic"));
        check("--auth basic --scope s", Err("--scope goes with --auth oauth2"));
    }

    #[test]
    fn a_secret_can_come_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "s3cret\r\n").unwrap();
        check(
            &format!("--auth bearer --token-file {}", file.display()),
            Ok(r#"{"kind":"bearer","token":"s3cret"}"#),
        );
        std::fs::write(&file, "\n").unwrap();
        let empty = format!("no secret from {}: it is empty", file.display());
        check(&format!("--auth bearer --token-file {}", file.display()), Err(&empty));
    }
}
