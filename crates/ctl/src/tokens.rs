//! The token service as every command sees it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::refusal::Refusal;
use crate::settings::{Setting, Settings, read_secret};

const AUTH_URL: Setting = Setting {
    name: "AUTH_URL",
    flag: Some("--auth-url"),
    what: "the address of the token service",
};

/// Whom a token is for; the names of the settings that hold the credentials.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Role {
    pub(crate) id: Setting,
    pub(crate) secret: Setting,
}

/// Runs the service.
pub(crate) const OPERATOR: Role = Role {
    id: Setting {
        name: "OPERATOR_CLIENT_ID",
        flag: Some("--operator-id"),
        what: "the operator's client id",
    },
    secret: Setting {
        name: "OPERATOR_CLIENT_SECRET",
        flag: Some("--operator-secret-file"),
        what: "the operator's client secret",
    },
};

/// Works for a merchant.
pub(crate) const MERCHANT: Role = Role {
    id: Setting { name: "CLIENT_ID", flag: Some("--client-id"), what: "the client id" },
    secret: Setting {
        name: "CLIENT_SECRET",
        flag: Some("--client-secret-file"),
        what: "the client secret",
    },
};

impl Role {
    /// The same for a command that takes any client's credentials.
    const fn by_client_flags(self) -> Self {
        Self { id: self.id.by("--client-id"), secret: self.secret.by("--client-secret-file") }
    }
}

/// Where the token service is.
#[derive(Args, Debug, Default)]
pub(crate) struct Place {
    /// Address of the token service [default: $AUTH_URL]
    #[arg(long, global = true, value_name = "URL", help_heading = "Connection")]
    auth_url: Option<Url>,
}

/// A merchant's credentials.
#[derive(Args, Debug, Default)]
pub(crate) struct ClientFlags {
    /// The API client [default: $CLIENT_ID]
    #[arg(long, value_name = "ID", help_heading = "Connection")]
    client_id: Option<String>,
    /// File with its secret, - for standard input [default: $CLIENT_SECRET]
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    client_secret_file: Option<PathBuf>,
}

impl ClientFlags {
    /// The credentials given, or else those of the role.
    pub(crate) fn credentials(
        &self,
        settings: &Settings,
        role: Role,
    ) -> anyhow::Result<Credentials> {
        let (id, file) = (self.client_id.as_deref(), self.client_secret_file.as_deref());
        Credentials::of_client(settings, role, id, file)
    }
}

/// Who asks for a token.
pub(crate) struct Credentials {
    id: String,
    secret: SecretString,
}

/// Something that grants tokens to one client.
pub(crate) struct TokenService {
    url: Url,
    credentials: Credentials,
}

/// What was granted: the token, and the whole answer around it.
pub(crate) struct Granted {
    pub(crate) access_token: SecretString,
    pub(crate) answer: Value,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoToken {
    #[error("no token for client {client_id}")]
    Refused { client_id: String, source: Refusal },
    /// It will work later: too much was asked for.
    #[error("no token from {url} at the moment")]
    Busy { url: Url, source: Refusal },
    /// It may work later.
    #[error("no token from {url}")]
    Unavailable { url: Url, source: anyhow::Error },
}

impl Place {
    pub(crate) fn url(&self, settings: &Settings) -> anyhow::Result<Url> {
        address(self.auth_url.as_ref(), settings, AUTH_URL)
    }
}

/// Where the token service is, for a command that has no flag for it.
pub(crate) fn known_url(settings: &Settings) -> anyhow::Result<Url> {
    address(None, settings, AUTH_URL.without_flag())
}

/// An address that a flag or a setting gives.
pub(crate) fn address(
    flag: Option<&Url>,
    settings: &Settings,
    setting: Setting,
) -> anyhow::Result<Url> {
    match flag {
        Some(url) => Ok(url.clone()),
        None => {
            let text = settings.need(setting)?;
            text.parse().with_context(|| format!("{} is not a URL: {text}", setting.name))
        }
    }
}

impl Credentials {
    /// What flags say, or else the settings of a role.
    pub(crate) fn find(
        settings: &Settings,
        role: Role,
        id: Option<&str>,
        secret_file: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let id = id.map_or_else(|| settings.need(role.id), Ok)?.to_owned();
        let secret = match secret_file {
            Some(file) => read_secret(file)?,
            None => settings.need(role.secret)?.to_owned(),
        };
        Ok(Self { id, secret: secret.into() })
    }

    /// The same for a command with `--client-id` and `--client-secret-file`, whatever the role.
    pub(crate) fn of_client(
        settings: &Settings,
        role: Role,
        id: Option<&str>,
        secret_file: Option<&Path>,
    ) -> anyhow::Result<Self> {
        Self::find(settings, role.by_client_flags(), id, secret_file)
    }

    /// The same for a command without flags.
    pub(crate) fn known(settings: &Settings, role: Role) -> anyhow::Result<Self> {
        let Role { id, secret } = role;
        let role = Role { id: id.without_flag(), secret: secret.without_flag() };
        Self::find(settings, role, None, None)
    }
}

impl TokenService {
    pub(crate) fn new(url: Url, credentials: Credentials) -> Self {
        Self { url, credentials }
    }

    /// Whom it grants tokens to.
    pub(crate) fn client_id(&self) -> &str {
        &self.credentials.id
    }

    /// Asks once.
    pub(crate) async fn request(
        &self,
        http: &Client,
        scope: Option<&str>,
    ) -> Result<Granted, NoToken> {
        #[derive(Deserialize)]
        struct Token {
            access_token: SecretString,
        }
        let mut body = json!({
            "grant_type": "client_credentials",
            "client_id": self.credentials.id,
            "client_secret": self.credentials.secret.expose_secret(),
        });
        if let (Some(scope), Some(body)) = (scope, body.as_object_mut()) {
            body.insert("scope".to_owned(), scope.into());
        }
        let url = below(&self.url, ["oauth", "token"]);
        let unavailable = |source: anyhow::Error| NoToken::Unavailable { url: url.clone(), source };
        let sent = http.post(url.clone()).json(&body).send().await;
        let answer = sent.map_err(|error| unavailable(error.without_url().into()))?;
        let status = answer.status();
        if status.is_success() {
            let answer: Value =
                answer.json().await.map_err(|error| unavailable(error.without_url().into()))?;
            let Token { access_token } =
                Token::deserialize(&answer).map_err(|error| unavailable(error.into()))?;
            return Ok(Granted { access_token, answer });
        }
        let refusal = Refusal::read(answer).await;
        Err(match status {
            StatusCode::TOO_MANY_REQUESTS => NoToken::Busy { url, source: refusal },
            status if status.is_client_error() => {
                NoToken::Refused { client_id: self.credentials.id.clone(), source: refusal }
            }
            _ => unavailable(refusal.into()),
        })
    }
}

/// The address with these segments below whatever path it has.
pub(crate) fn below<'a>(base: &Url, segments: impl IntoIterator<Item = &'a str>) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

#[cfg(test)]
impl TokenService {
    pub(crate) fn for_test(url: Url) -> Self {
        Self::new(url, Credentials { id: "client".to_owned(), secret: "secret".into() })
    }
}
