//! An endpoint of a merchant.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::authentication::Authentication;
use super::secret_url::SecretUrl;
use crate::message_kind::MessageVersion;

/// An encrypted secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Sealed(pub String);

impl From<String> for Sealed {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Display for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address, credentials and options of one interface. `S` is the form of secrets: encrypted in the database,
/// plain in requests, hidden in responses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(bound(
    serialize = "S: Serialize + Display",
    deserialize = "S: Deserialize<'de> + From<String>"
))]
pub struct Endpoint<S> {
    /// The complete URL. Defaults to the merchant's base URL followed by `path`. Its query is a
    /// secret.
    #[schema(value_type = Option<String>)]
    pub url: Option<SecretUrl<S>>,
    /// The path below the merchant's base URL. Defaults to the path of the interface.
    pub path: Option<String>,
    /// Headers of every request. Their values are secrets.
    pub headers: BTreeMap<String, S>,
    pub authentication: Authentication<S>,
    /// The time at which the client certificate of the authentication expires.
    pub certificate_expires_at: Option<DateTime<Utc>>,
    /// The timeout of one attempt. Defaults to the timeout of the service.
    pub timeout_ms: Option<u32>,
    /// The version of the messages. Defaults to the version of the contract.
    pub version: Option<MessageVersion>,
    /// When the endpoint works again after a failure of some minutes, its dead messages of this many days are sent
    /// again. Absent: they wait for a replay.
    #[schema(minimum = 1, maximum = 30)]
    pub recovery_replay_days: Option<u16>,
    /// A paused endpoint receives no messages; they wait.
    pub paused: bool,
    /// The secrets that sign messages, newest first. During a rotation there are several.
    pub signing_secrets: Vec<SigningSecret<S>>,
}

/// A secret that signs messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SigningSecret<S> {
    pub id: Uuid,
    pub secret: S,
    pub created_at: DateTime<Utc>,
    /// Set by a rotation. Until this time both the old and the new secret sign.
    pub expires_at: Option<DateTime<Utc>>,
}

impl<S> Endpoint<S> {
    /// Converts every secret to another form.
    pub fn map<T, E>(&self, mut convert: impl FnMut(&S) -> Result<T, E>) -> Result<Endpoint<T>, E> {
        let secret = |secret: &SigningSecret<S>| {
            let SigningSecret { id, created_at, expires_at, .. } = *secret;
            Ok(SigningSecret { id, secret: convert(&secret.secret)?, created_at, expires_at })
        };
        let signing_secrets = self.signing_secrets.iter().map(secret).collect::<Result<_, E>>()?;
        let url = self.url.as_ref().map(|url| url.map(&mut convert)).transpose()?;
        let header = |(name, value): (&String, &S)| Ok((name.clone(), convert(value)?));
        let headers = self.headers.iter().map(header).collect::<Result<_, E>>()?;
        Ok(Endpoint {
            url,
            path: self.path.clone(),
            headers,
            authentication: self.authentication.map(convert)?,
            certificate_expires_at: self.certificate_expires_at,
            timeout_ms: self.timeout_ms,
            version: self.version,
            recovery_replay_days: self.recovery_replay_days,
            paused: self.paused,
            signing_secrets,
        })
    }
}
