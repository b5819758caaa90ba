//! Where a merchant receives its messages, and what we must show to be let in.

use std::{collections::BTreeMap, fmt, str::FromStr};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    access::MerchantId,
    message_kind::{MessageKind, VARIANTS_PATH},
};

/// A secret nobody can read without the key; safe to store and to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Sealed(pub String);

/// A client-operated interface: a kind of message, or the question for variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Interface {
    Message(MessageKind),
    Variants,
}

const VARIANTS: &str = "exchange-variants";

impl Interface {
    pub fn all() -> impl Iterator<Item = Self> {
        MessageKind::ALL.into_iter().map(Self::Message).chain([Self::Variants])
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Message(kind) => kind.name(),
            Self::Variants => VARIANTS,
        }
    }

    /// What the secrets of this interface are sealed with, so that they open nowhere else.
    pub fn sealing_context(self, merchant: &MerchantId) -> String {
        format!("endpoint:{merchant}:{self}")
    }

    pub fn default_path(self) -> &'static str {
        match self {
            Self::Message(kind) => kind.default_path(),
            Self::Variants => VARIANTS_PATH,
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Not an interface of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no interface {0:?}: known are {known}", known = names())]
pub struct UnknownInterface(pub String);

fn names() -> String {
    Interface::all().map(Interface::name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Interface {
    type Err = UnknownInterface;

    fn from_str(text: &str) -> Result<Self, UnknownInterface> {
        Self::all()
            .find(|interface| interface.name() == text)
            .ok_or_else(|| UnknownInterface(text.to_owned()))
    }
}

impl Serialize for Interface {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Interface {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// How messages of one interface reach the merchant. `S` is how secrets are held: sealed at rest,
/// in the clear on the way in, hidden on the way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Endpoint<S> {
    /// The whole address; without it, the merchant's base URL and `path`.
    pub url: Option<String>,
    /// Relative to the merchant's base URL; without it, the interface's usual path.
    pub path: Option<String>,
    /// Sent with every request.
    pub headers: BTreeMap<String, String>,
    pub authentication: Authentication<S>,
    /// The whole of one attempt; without it, the service's own limit.
    pub timeout_ms: Option<u32>,
    /// While paused, messages wait.
    pub paused: bool,
    /// What messages are signed with; several while a rotation is under way, newest first.
    pub signing_secrets: Vec<SigningSecret<S>>,
}

/// What the merchant's side asks of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
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
        token_url: String,
        client_id: String,
        client_secret: S,
        scope: Option<String>,
        credentials_in: CredentialsIn,
    },
}

/// Where a token request carries the client's credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CredentialsIn {
    Body,
    Basic,
}

/// A secret that signs messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SigningSecret<S> {
    pub id: Uuid,
    pub secret: S,
    pub created_at: DateTime<Utc>,
    /// Set when a newer one replaced it: until then both sign.
    pub expires_at: Option<DateTime<Utc>>,
}

impl<S> Authentication<S> {
    /// The same with every secret held another way.
    pub fn map<T, E>(
        &self,
        mut hold: impl FnMut(&S) -> Result<T, E>,
    ) -> Result<Authentication<T>, E> {
        Ok(match self {
            Self::None => Authentication::None,
            Self::Basic { username, password } => {
                Authentication::Basic { username: username.clone(), password: hold(password)? }
            }
            Self::Bearer { token } => Authentication::Bearer { token: hold(token)? },
            Self::ApiKey { header, key } => {
                Authentication::ApiKey { header: header.clone(), key: hold(key)? }
            }
            Self::Oauth2 { token_url, client_id, client_secret, scope, credentials_in } => {
                Authentication::Oauth2 {
                    token_url: token_url.clone(),
                    client_id: client_id.clone(),
                    client_secret: hold(client_secret)?,
                    scope: scope.clone(),
                    credentials_in: *credentials_in,
                }
            }
        })
    }
}

impl<S> Endpoint<S> {
    /// The same with every secret held another way.
    pub fn map<T, E>(&self, mut hold: impl FnMut(&S) -> Result<T, E>) -> Result<Endpoint<T>, E> {
        let secret = |secret: &SigningSecret<S>| {
            let SigningSecret { id, created_at, expires_at, .. } = *secret;
            Ok(SigningSecret { id, secret: hold(&secret.secret)?, created_at, expires_at })
        };
        let signing_secrets = self.signing_secrets.iter().map(secret).collect::<Result<_, E>>()?;
        Ok(Endpoint {
            url: self.url.clone(),
            path: self.path.clone(),
            headers: self.headers.clone(),
            authentication: self.authentication.map(hold)?,
            timeout_ms: self.timeout_ms,
            paused: self.paused,
            signing_secrets,
        })
    }
}
