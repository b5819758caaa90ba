//! Access tokens from the auth service, with the OAuth 2.0 client credentials grant.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::api_error::ApiError;
use crate::service_urls::{self, join, resolve};
use crate::settings::{Setting, Settings, read_secret};

/// The settings that hold the credentials of a client.
#[derive(Debug, Clone, Copy)]
pub struct ClientSettings {
    pub id: Setting,
    pub secret: Setting,
}

pub const OPERATOR: ClientSettings = ClientSettings {
    id: Setting {
        name: "OPERATOR_CLIENT_ID",
        flag: Some("--operator-id"),
        description: "the operator's client id",
    },
    secret: Setting {
        name: "OPERATOR_CLIENT_SECRET",
        flag: Some("--operator-secret-file"),
        description: "the operator's client secret",
    },
};

pub const MERCHANT: ClientSettings = ClientSettings {
    id: Setting { name: "CLIENT_ID", flag: Some("--client-id"), description: "the client id" },
    secret: Setting {
        name: "CLIENT_SECRET",
        flag: Some("--client-secret-file"),
        description: "the client secret",
    },
};

/// The owner of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// $CLIENT_ID and $CLIENT_SECRET
    Merchant,
    /// $OPERATOR_CLIENT_ID and $OPERATOR_CLIENT_SECRET
    Operator,
}

impl Role {
    pub(crate) fn credentials(self) -> ClientSettings {
        match self {
            Self::Merchant => MERCHANT,
            Self::Operator => OPERATOR,
        }
    }
}

#[derive(Args, Debug, Default)]
pub(crate) struct AuthUrlArgs {
    /// URL of the auth service [default: $AUTH_URL]
    #[arg(long, global = true, value_name = "URL", help_heading = "Connection")]
    auth_url: Option<Url>,
}

impl AuthUrlArgs {
    pub(crate) fn url(&self, settings: &Settings) -> anyhow::Result<Url> {
        resolve(self.auth_url.as_ref(), settings, service_urls::AUTH)
    }
}

/// The API client that calls a service.
#[derive(Args, Debug, Default)]
pub(crate) struct ClientArgs {
    #[command(flatten)]
    auth: AuthUrlArgs,
    /// ID of the API client
    /// [default: $CLIENT_ID, or $OPERATOR_CLIENT_ID for the operator]
    #[arg(
        long,
        global = true,
        value_name = "ID",
        help_heading = "Connection",
        verbatim_doc_comment
    )]
    client_id: Option<String>,
    /// File with the client's secret, - for standard input
    /// [default: $CLIENT_SECRET, or $OPERATOR_CLIENT_SECRET for the operator]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Connection",
        verbatim_doc_comment
    )]
    client_secret_file: Option<PathBuf>,
}

impl ClientArgs {
    /// The client of the flags, or else of the settings.
    pub(crate) fn token_client(
        &self,
        settings: &Settings,
        client: ClientSettings,
    ) -> anyhow::Result<TokenClient> {
        let client = ClientSettings {
            id: client.id.with_flag("--client-id"),
            secret: client.secret.with_flag("--client-secret-file"),
        };
        let url = self.auth.url(settings)?;
        let id = self.client_id.as_deref();
        let file = self.client_secret_file.as_deref();
        TokenClient::resolve(url, settings, client, id, file)
    }
}

/// Requests access tokens for one API client.
pub struct TokenClient {
    pub(crate) url: Url,
    pub(crate) client_id: String,
    client_secret: SecretString,
}

/// An access token and the whole token response.
pub struct IssuedToken {
    pub(crate) access_token: SecretString,
    pub(crate) response: Value,
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("no token for client {client_id}")]
    Rejected { client_id: String, source: ApiError },
    #[error("too many token requests to {url}")]
    RateLimited { url: Url, source: ApiError },
    /// A failure that may be transient.
    #[error("no token from {url}")]
    Unavailable { url: Url, source: anyhow::Error },
}

impl TokenClient {
    /// The client of the settings, for a command without connection flags.
    pub fn from_settings(settings: &Settings, client: ClientSettings) -> anyhow::Result<Self> {
        let client =
            ClientSettings { id: client.id.without_flag(), secret: client.secret.without_flag() };
        let url = resolve(None, settings, service_urls::AUTH.without_flag())?;
        Self::resolve(url, settings, client, None, None)
    }

    pub(crate) fn resolve(
        url: Url,
        settings: &Settings,
        client: ClientSettings,
        id: Option<&str>,
        secret_file: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let client_id = id.map_or_else(|| settings.require(client.id), Ok)?.to_owned();
        let client_secret = match secret_file {
            Some(file) => read_secret(file)?,
            None => settings.require(client.secret)?.to_owned(),
        };
        Ok(Self { url, client_id, client_secret: client_secret.into() })
    }

    /// Requests a token, once. Without `scope` the token has all scopes of the client.
    pub async fn request(
        &self,
        http: &Client,
        scope: Option<&str>,
    ) -> Result<IssuedToken, TokenError> {
        #[derive(Deserialize)]
        struct Token {
            access_token: SecretString,
        }
        let mut body = json!({
            "grant_type": "client_credentials",
            "client_id": self.client_id,
            "client_secret": self.client_secret.expose_secret(),
        });
        if let (Some(scope), Some(body)) = (scope, body.as_object_mut()) {
            body.insert("scope".to_owned(), scope.into());
        }
        let url = join(&self.url, ["oauth", "token"]);
        let unavailable =
            |source: anyhow::Error| TokenError::Unavailable { url: url.clone(), source };
        let sent = http.post(url.clone()).json(&body).send().await;
        let response = sent.map_err(|error| unavailable(error.without_url().into()))?;
        let status = response.status();
        if status.is_success() {
            let response: Value =
                response.json().await.map_err(|error| unavailable(error.without_url().into()))?;
            let Token { access_token } =
                Token::deserialize(&response).map_err(|error| unavailable(error.into()))?;
            return Ok(IssuedToken { access_token, response });
        }
        let source = ApiError::read(response).await;
        Err(match status {
            StatusCode::TOO_MANY_REQUESTS => TokenError::RateLimited { url, source },
            status if status.is_client_error() => {
                TokenError::Rejected { client_id: self.client_id.clone(), source }
            }
            _ => unavailable(source.into()),
        })
    }
}

#[cfg(test)]
impl TokenClient {
    pub(crate) fn for_test(url: Url) -> Self {
        Self { url, client_id: "client".to_owned(), client_secret: "secret".into() }
    }
}
