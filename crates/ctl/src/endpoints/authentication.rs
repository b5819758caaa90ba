//! Flags for the authentication of requests to an endpoint.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use domain::merchant::{Authentication, CredentialsIn};
use serde_json::Value;

use crate::output::{text_at, time_at};
use crate::settings::read_secret;
use crate::usage_error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuthKind {
    None,
    Basic,
    Bearer,
    ApiKey,
    Oauth2,
    ClientCertificate,
    AwsSigv4,
}

impl fmt::Display for AuthKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_possible_value().map_or(Ok(()), |value| f.write_str(value.get_name()))
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CredentialsPlace {
    Body,
    Basic,
}

/// Pass secrets in a file or on standard input (-): other users of this machine can read its
/// command lines.
#[derive(Args)]
#[command(next_help_heading = "Authentication")]
pub(super) struct AuthenticationArgs {
    /// Authentication that the endpoint requires
    #[arg(long, value_name = "KIND", default_value_t = AuthKind::None)]
    auth: AuthKind,
    /// basic: user name
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// basic: password
    #[arg(long)]
    password: Option<String>,
    /// basic: file with the password, - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "password")]
    password_file: Option<PathBuf>,
    /// bearer: token
    #[arg(long)]
    token: Option<String>,
    /// bearer: file with the token, - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    /// api-key: header that carries the key
    #[arg(long, value_name = "NAME")]
    key_header: Option<String>,
    /// api-key: key
    #[arg(long)]
    key: Option<String>,
    /// api-key: file with the key, - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    key_file: Option<PathBuf>,
    /// oauth2: URL of the token endpoint
    #[arg(long, value_name = "URL")]
    token_url: Option<String>,
    /// oauth2: client ID
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// oauth2: client secret
    #[arg(long, value_name = "SECRET")]
    client_secret: Option<String>,
    /// oauth2: file with the client secret, - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "client_secret")]
    client_secret_file: Option<PathBuf>,
    /// oauth2: scope of the token
    #[arg(long)]
    scope: Option<String>,
    /// oauth2: part of a token request that carries the client's credentials [default: basic]
    #[arg(long, value_name = "PLACE")]
    credentials_in: Option<CredentialsPlace>,
    /// client-certificate: file with the certificate and its chain in PEM
    #[arg(long, value_name = "FILE")]
    certificate_file: Option<PathBuf>,
    /// client-certificate: file with the private key in PEM, - for standard input
    #[arg(long, value_name = "FILE")]
    private_key_file: Option<PathBuf>,
    /// aws-sigv4: access key ID
    #[arg(long, value_name = "ID")]
    access_key_id: Option<String>,
    /// aws-sigv4: file with the secret access key, - for standard input
    #[arg(long, value_name = "FILE")]
    secret_access_key_file: Option<PathBuf>,
    /// aws-sigv4: file with the session token of temporary credentials
    #[arg(long, value_name = "FILE")]
    session_token_file: Option<PathBuf>,
    /// aws-sigv4: region, for example eu-central-1
    #[arg(long)]
    region: Option<String>,
    /// aws-sigv4: service [default: execute-api]
    #[arg(long)]
    service: Option<String>,
}

impl AuthenticationArgs {
    /// Checks that the flags are complete and belong to the authentication kind.
    pub(super) fn read(self) -> anyhow::Result<Authentication<String>> {
        self.reject_flags_of_other_kinds()?;
        let kind = self.auth;
        Ok(match kind {
            AuthKind::None => Authentication::None,
            AuthKind::Basic => Authentication::Basic {
                username: required(self.username, kind, "--username")?,
                password: secret(self.password, self.password_file, kind, "--password-file")?,
            },
            AuthKind::Bearer => Authentication::Bearer {
                token: secret(self.token, self.token_file, kind, "--token-file")?,
            },
            AuthKind::ApiKey => Authentication::ApiKey {
                header: required(self.key_header, kind, "--key-header")?,
                key: secret(self.key, self.key_file, kind, "--key-file")?,
            },
            AuthKind::Oauth2 => Authentication::Oauth2 {
                token_url: required(self.token_url, kind, "--token-url")?.into(),
                client_id: required(self.client_id, kind, "--client-id")?,
                client_secret: secret(
                    self.client_secret,
                    self.client_secret_file,
                    kind,
                    "--client-secret-file",
                )?,
                scope: self.scope,
                credentials_in: match self.credentials_in {
                    Some(CredentialsPlace::Body) => CredentialsIn::Body,
                    Some(CredentialsPlace::Basic) | None => CredentialsIn::Basic,
                },
            },
            AuthKind::ClientCertificate => Authentication::ClientCertificate {
                certificate: secret(None, self.certificate_file, kind, "--certificate-file")?,
                private_key: secret(None, self.private_key_file, kind, "--private-key-file")?,
            },
            AuthKind::AwsSigv4 => Authentication::AwsSigv4 {
                access_key_id: required(self.access_key_id, kind, "--access-key-id")?,
                secret_access_key: secret(
                    None,
                    self.secret_access_key_file,
                    kind,
                    "--secret-access-key-file",
                )?,
                session_token: self.session_token_file.as_deref().map(read_secret).transpose()?,
                region: required(self.region, kind, "--region")?,
                service: self.service.unwrap_or_else(|| "execute-api".to_owned()),
            },
        })
    }

    fn reject_flags_of_other_kinds(&self) -> anyhow::Result<()> {
        let flags = [
            ("--username", self.username.is_some(), AuthKind::Basic),
            ("--password", self.password.is_some(), AuthKind::Basic),
            ("--password-file", self.password_file.is_some(), AuthKind::Basic),
            ("--token", self.token.is_some(), AuthKind::Bearer),
            ("--token-file", self.token_file.is_some(), AuthKind::Bearer),
            ("--key-header", self.key_header.is_some(), AuthKind::ApiKey),
            ("--key", self.key.is_some(), AuthKind::ApiKey),
            ("--key-file", self.key_file.is_some(), AuthKind::ApiKey),
            ("--token-url", self.token_url.is_some(), AuthKind::Oauth2),
            ("--client-id", self.client_id.is_some(), AuthKind::Oauth2),
            ("--client-secret", self.client_secret.is_some(), AuthKind::Oauth2),
            ("--client-secret-file", self.client_secret_file.is_some(), AuthKind::Oauth2),
            ("--scope", self.scope.is_some(), AuthKind::Oauth2),
            ("--credentials-in", self.credentials_in.is_some(), AuthKind::Oauth2),
            ("--certificate-file", self.certificate_file.is_some(), AuthKind::ClientCertificate),
            ("--private-key-file", self.private_key_file.is_some(), AuthKind::ClientCertificate),
            ("--access-key-id", self.access_key_id.is_some(), AuthKind::AwsSigv4),
            ("--secret-access-key-file", self.secret_access_key_file.is_some(), AuthKind::AwsSigv4),
            ("--session-token-file", self.session_token_file.is_some(), AuthKind::AwsSigv4),
            ("--region", self.region.is_some(), AuthKind::AwsSigv4),
            ("--service", self.service.is_some(), AuthKind::AwsSigv4),
        ];
        match flags.into_iter().find(|(_, is_given, kind)| *is_given && *kind != self.auth) {
            Some((flag, _, kind)) => Err(usage_error(format!("{flag} requires --auth {kind}"))),
            None => Ok(()),
        }
    }
}

fn required(value: Option<String>, kind: AuthKind, flag: &str) -> anyhow::Result<String> {
    value.ok_or_else(|| usage_error(format!("--auth {kind} requires {flag}")))
}

fn secret(
    value: Option<String>,
    file: Option<PathBuf>,
    kind: AuthKind,
    flag: &str,
) -> anyhow::Result<String> {
    match file {
        Some(file) => read_secret(&file),
        None => required(value, kind, flag),
    }
}

/// The authentication kind of an endpoint.
pub(super) fn kind(endpoint: &Value) -> String {
    text_at(endpoint, "/authentication/kind").replace('_', "-")
}

/// The authentication kind of an endpoint with its settings, except secrets.
pub(super) fn describe(endpoint: &Value) -> String {
    let kind = kind(endpoint);
    let setting = |name: &str| text_at(endpoint, &format!("/authentication/{name}"));
    match kind.as_str() {
        "basic" => format!("{kind}, as {}", setting("username")),
        "api-key" => format!("{kind}, in {}", setting("header")),
        "oauth2" => format!("{kind}, as {} at {}", setting("client_id"), setting("token_url")),
        "client-certificate" => {
            format!("{kind}, expires {}", time_at(endpoint, "/certificate_expires_at"))
        }
        "aws-sigv4" => format!(
            "{kind}, as {} for {} in {}",
            setting("access_key_id"),
            setting("service"),
            setting("region")
        ),
        _ => kind,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        authentication: AuthenticationArgs,
    }

    #[track_caller]
    fn check(line: &str, expected: Result<&str, &str>) {
        let cli = Cli::try_parse_from(format!("x {line}").split_whitespace()).unwrap();
        let read = cli.authentication.read().map(|read| serde_json::to_string(&read).unwrap());
        let read = read.map_err(|error| error.to_string());
        assert_eq!(read.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn each_kind_accepts_only_its_own_flags() {
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
        check("--auth basic --username u", Err("--auth basic requires --password-file"));
        check("--auth oauth2", Err("--auth oauth2 requires --token-url"));
        check("--username u --password p", Err("--username requires --auth basic"));
        check("--auth basic --scope s", Err("--scope requires --auth oauth2"));
        check("--auth aws-sigv4", Err("--auth aws-sigv4 requires --access-key-id"));
        check("--region r", Err("--region requires --auth aws-sigv4"));
        check(
            "--auth client-certificate",
            Err("--auth client-certificate requires --certificate-file"),
        );
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
        let aws = "--auth aws-sigv4 --access-key-id A --region r --secret-access-key-file";
        check(
            &format!("{aws} {}", file.display()),
            Ok(
                r#"{"kind":"aws_sigv4","access_key_id":"A","secret_access_key":"s3cret","session_token":null,"region":"r","service":"execute-api"}"#,
            ),
        );
        std::fs::write(&file, "\n").unwrap();
        let empty = format!("the secret file {} is empty", file.display());
        check(&format!("--auth bearer --token-file {}", file.display()), Err(&empty));
    }
}
