//! The authentication of requests to a merchant's endpoint.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::guard::Guard;
use super::headers::{
    basic_username, filled_secret, filled_value, header_value, key_header, secret_value,
};
use super::secret_url::SecretUrl;
use super::urls::secret_url;
use crate::json::{Object, one_of, variant};

/// The credentials that the endpoint requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    bound(
        serialize = "S: Serialize + Display",
        deserialize = "S: Deserialize<'de> + From<String>"
    )
)]
pub enum Authentication<S> {
    None,
    Basic {
        username: String,
        password: S,
    },
    Bearer {
        token: S,
    },
    ApiKey {
        header: String,
        key: S,
    },
    Oauth2 {
        #[schema(value_type = String)]
        token_url: SecretUrl<S>,
        client_id: String,
        client_secret: S,
        scope: Option<String>,
        credentials_in: CredentialsIn,
    },
}

/// The part of a token request that carries the client's credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CredentialsIn {
    Body,
    Basic,
}

impl<S> Authentication<S> {
    /// Converts every secret to another form.
    pub fn map<T, E>(
        &self,
        mut convert: impl FnMut(&S) -> Result<T, E>,
    ) -> Result<Authentication<T>, E> {
        Ok(match self {
            Self::None => Authentication::None,
            Self::Basic { username, password } => {
                Authentication::Basic { username: username.clone(), password: convert(password)? }
            }
            Self::Bearer { token } => Authentication::Bearer { token: convert(token)? },
            Self::ApiKey { header, key } => {
                Authentication::ApiKey { header: header.clone(), key: convert(key)? }
            }
            Self::Oauth2 { token_url, client_id, client_secret, scope, credentials_in } => {
                Authentication::Oauth2 {
                    token_url: token_url.map(&mut convert)?,
                    client_id: client_id.clone(),
                    client_secret: convert(client_secret)?,
                    scope: scope.clone(),
                    credentials_in: *credentials_in,
                }
            }
        })
    }
}

impl Authentication<String> {
    pub(super) fn read(document: &Object<'_>, guard: &Guard) -> Option<Self> {
        const KINDS: [&str; 5] = ["none", "basic", "bearer", "api_key", "oauth2"];
        let reject_unknown = |fields: &[&str]| {
            document.reject_unknown(&[&["kind"], fields].concat());
        };
        match document.required("kind", one_of(&KINDS.map(|kind| (kind, kind))))? {
            "basic" => {
                reject_unknown(&["username", "password"]);
                let username = document.required("username", basic_username);
                let password = document.required("password", secret_value);
                Some(Self::Basic { username: username?, password: password? })
            }
            "bearer" => {
                reject_unknown(&["token"]);
                Some(Self::Bearer { token: document.required("token", filled_secret)? })
            }
            "api_key" => {
                reject_unknown(&["header", "key"]);
                let header = document.required("header", key_header);
                let key = document.required("key", filled_secret);
                Some(Self::ApiKey { header: header?, key: key? })
            }
            "oauth2" => Self::read_oauth2(document, guard),
            _ => {
                reject_unknown(&[]);
                Some(Self::None)
            }
        }
    }

    fn read_oauth2(document: &Object<'_>, guard: &Guard) -> Option<Self> {
        document.reject_unknown(&[
            "kind",
            "token_url",
            "client_id",
            "client_secret",
            "scope",
            "credentials_in",
        ]);
        let token_url = document.required("token_url", secret_url(guard));
        let client_id = document.required("client_id", filled_value);
        let client_secret = document.required("client_secret", secret_value);
        let scope = document.optional("scope", header_value);
        let credentials_in = document.optional("credentials_in", variant);
        Some(Self::Oauth2 {
            token_url: token_url?,
            client_id: client_id?,
            client_secret: client_secret?,
            scope: scope?,
            credentials_in: credentials_in?.unwrap_or(CredentialsIn::Basic),
        })
    }
}
