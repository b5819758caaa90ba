//! Access tokens: issue, revoke and introspect them.
//!
//! All failed authentications get the same response after the same minimum time, so that a caller
//! cannot find out which clients exist.
//!
//! See docs/decisions/tokens.md.

use std::{net::IpAddr, num::NonZeroU32, sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::access::{MerchantId, Scope, Scopes};
use platform::{
    DEFAULT_RETRY_AFTER, ErrorKind, Failure, Problem, chain,
    identity::{AUDIENCE, Claims, TokenError},
};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    App,
    audit::NewAuditRecord,
    client_cache::AuthenticatedClient,
    clients,
    credentials::is_valid_client_id,
    error::Error,
    revocations,
    store::{audit, clients::Client},
};

/// Tokens that one client can revoke in a minute. All services keep revoked tokens in memory until they expire.
pub(crate) const MAX_REVOCATIONS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(300).unwrap();

/// An error of the OAuth endpoints (RFC 6749, 5.2).
#[derive(Debug, thiserror::Error)]
pub(crate) enum OauthError {
    #[error("{0}")]
    InvalidRequest(String),
    /// The body is too slow, too large or in an unsupported format. Keeps the status of the problem.
    #[error("{0}")]
    UnreadableBody(Problem),
    #[error("client authentication failed")]
    InvalidClient { client_id: Option<String>, used_basic_auth: bool },
    #[error("only client_credentials is supported")]
    UnsupportedGrantType,
    #[error("the scope is unknown or not granted to the client")]
    InvalidScope,
    #[error("too many failed attempts of this client")]
    LockedOut { client_id: Option<String>, remaining: Duration },
    #[error("the client revokes too many tokens")]
    TooManyRevocations(Duration),
    #[error("too many requests are in progress")]
    Overloaded,
    #[error("temporarily unavailable")]
    Unavailable,
    #[error("internal error")]
    Internal,
}

impl OauthError {
    /// Logs the cause, which is not part of the response.
    fn from_cause(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Unavailable => {
                tracing::warn!(error = chain(error), "token request failed");
                Self::Unavailable
            }
            ErrorKind::Limited => Self::Overloaded,
            _ => {
                tracing::error!(error = chain(error), "token request failed");
                Self::Internal
            }
        }
    }

    /// The wait before the request is sent again, for a limit that was reached.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::LockedOut { remaining, .. } | Self::TooManyRevocations(remaining) => {
                Some(*remaining)
            }
            Self::Overloaded | Self::Unavailable => Some(DEFAULT_RETRY_AFTER),
            _ => None,
        }
    }
}

/// The credentials in a token request.
pub(crate) struct ClientCredentials {
    pub(crate) client_id: String,
    pub(crate) client_secret: SecretString,
    /// Whether they came in the `Authorization` header.
    pub(crate) used_basic_auth: bool,
}

/// An access token.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenResponse {
    access_token: String,
    #[schema(example = "Bearer")]
    token_type: &'static str,
    /// In seconds.
    #[schema(example = 90_000)]
    expires_in: i64,
    #[schema(example = "orders returns")]
    scope: String,
    /// Unix time.
    created_at: i64,
}

/// The state of a token (RFC 7662).
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct Introspection {
    active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merchant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iat: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aud: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jti: Option<String>,
}

impl From<&Claims> for Introspection {
    fn from(claims: &Claims) -> Self {
        Self {
            active: true,
            scope: Some(claims.scope.to_string()),
            client_id: Some(claims.client_id.clone()),
            merchant: claims.merchant.as_ref().map(ToString::to_string),
            token_type: Some("Bearer"),
            exp: Some(claims.exp),
            iat: Some(claims.iat),
            sub: Some(claims.sub.clone()),
            aud: Some(claims.aud.clone()),
            iss: Some(claims.iss.clone()),
            jti: Some(claims.jti.clone()),
        }
    }
}

/// The client credentials grant (RFC 6749, 4.4). Without `scope` the token gets all scopes of the
/// client.
pub(crate) async fn issue(
    app: &App,
    grant_type: Option<String>,
    scope: Option<String>,
    credentials: Option<ClientCredentials>,
    address: IpAddr,
) -> Result<TokenResponse, OauthError> {
    let missing = || OauthError::InvalidRequest("grant_type is missing".to_owned());
    if grant_type.ok_or_else(missing)? != "client_credentials" {
        return Err(OauthError::UnsupportedGrantType);
    }
    let authenticated = authenticate_client(app, credentials, address).await?;
    let client = &authenticated.client;
    let scopes = match scope.map(|scope| scope.parse::<Scopes>()) {
        None => client.scopes.clone(),
        Some(Ok(scopes)) if !scopes.is_empty() && scopes.is_subset(&client.scopes) => scopes,
        Some(_) => return Err(OauthError::InvalidScope),
    };
    let lifetime = TimeDelta::from_std(app.settings.tokens.lifetime).unwrap_or(TimeDelta::MAX);
    let claims = claims(app, &client.id, scopes, client.merchant.clone(), lifetime);
    let token = app.signing_keys.sign(&claims, app.clock.now());
    let token = token.map_err(|error| OauthError::from_cause(&error))?;
    let access_token = token.ok_or(OauthError::Unavailable)?;
    record_grant(app, &claims, address);
    clients::record_use(app, &authenticated).await;
    Ok(TokenResponse {
        access_token,
        token_type: "Bearer",
        expires_in: claims.exp - claims.iat,
        scope: claims.scope.to_string(),
        created_at: claims.iat,
    })
}

/// Logs and counts a granted token. The log contains the token's id, not the token.
pub(crate) fn record_grant(app: &App, claims: &Claims, address: IpAddr) {
    tracing::info!(
        subject = claims.sub,
        client_id = claims.client_id,
        merchant = claims.merchant.as_ref().map(MerchantId::as_str),
        scope = %claims.scope,
        remote_address = %address,
        token_id = claims.jti,
        "token granted"
    );
    app.tokens_granted.add(1, &[]);
}

/// The claims of a client's token.
pub(crate) fn claims(
    app: &App,
    client_id: &str,
    scope: Scopes,
    merchant: Option<MerchantId>,
    lifetime: TimeDelta,
) -> Claims {
    let now = app.clock.now();
    Claims {
        iss: app.settings.tokens.issuer.clone(),
        sub: client_id.to_owned(),
        aud: AUDIENCE.to_owned(),
        client_id: client_id.to_owned(),
        jti: Uuid::now_v7().to_string(),
        iat: now.timestamp(),
        exp: (now + lifetime).timestamp(),
        scope,
        merchant,
        sid: None,
    }
}

/// The client with these credentials.
pub(crate) async fn authenticate(
    app: &App,
    credentials: Option<ClientCredentials>,
    address: IpAddr,
) -> Result<Client, OauthError> {
    Ok(authenticate_client(app, credentials, address).await?.client)
}

/// The client with these credentials, and its secret.
async fn authenticate_client(
    app: &App,
    credentials: Option<ClientCredentials>,
    address: IpAddr,
) -> Result<AuthenticatedClient, OauthError> {
    let started_at = Instant::now();
    let Some(ClientCredentials { client_id, client_secret, used_basic_auth }) = credentials else {
        return Err(OauthError::InvalidClient { client_id: None, used_basic_auth: false });
    };
    let id = Some(client_id.as_str()).filter(|id| is_valid_client_id(id));
    if let Some(remaining) = app.brute_force.lockout(address, id) {
        let client_id = known_id(app, id).await;
        return Err(OauthError::LockedOut { client_id, remaining });
    }
    if let Some(id) = id {
        let client = app.client_cache.authenticate(app, id, client_secret.expose_secret()).await;
        if let Some(client) = client.map_err(|error| OauthError::from_cause(&error))? {
            return Ok(client);
        }
    }
    let client_id = known_id(app, id).await;
    app.brute_force.refuse(address, id, started_at).await;
    Err(OauthError::InvalidClient { client_id, used_basic_auth })
}

/// The client id for the log, if a client has it.
async fn known_id(app: &App, id: Option<&str>) -> Option<String> {
    app.client_cache.known_id(app, id?).await.map(str::to_owned)
}

/// Revokes a token of the client (RFC 7009); an operator can revoke any token. An invalid token or a
/// token of another client is ignored. Revoking a token again publishes the revocation again.
pub(crate) async fn revoke(app: &App, client: &Client, token: &str) -> Result<(), OauthError> {
    let claims = if_valid(app.verifier.read(token).await)?;
    let Some(claims) = claims.filter(|claims| has_access(client, claims)) else { return Ok(()) };
    let counted = app.revocation_limit.take(&client.id, app.clock.now());
    counted.map_err(OauthError::TooManyRevocations)?;
    let revoked = async {
        let now = app.clock.now();
        let mut conn = app.pool.get().await?;
        conn.transaction(async |conn| {
            let (revocation, is_new) = revocations::revoke_token(app, conn, &claims, now).await?;
            if is_new {
                let record = NewAuditRecord {
                    actor: &client.id,
                    action: "token.revoked",
                    subject: format!("token/{}", claims.jti),
                    merchant: claims.merchant.as_ref(),
                    detail: serde_json::json!({ "client_id": claims.client_id }),
                };
                audit::insert(conn, record, now).await?;
            }
            Ok(revocation)
        })
        .await
    };
    let revocation = revoked.await.map_err(|error: Error| OauthError::from_cause(&error))?;
    app.verifier.revocations().add(revocation);
    Ok(())
}

/// The state of a token of the client (RFC 7662); an operator can introspect any token. Other tokens
/// are reported as inactive.
pub(crate) async fn introspect(
    app: &App,
    client: &Client,
    token: &str,
) -> Result<Introspection, OauthError> {
    let claims = if_valid(app.verifier.verify(token).await)?;
    let claims = claims.filter(|claims| has_access(client, claims));
    Ok(claims.as_deref().map(Introspection::from).unwrap_or_default())
}

fn has_access(client: &Client, claims: &Claims) -> bool {
    claims.client_id == client.id || client.scopes.contains(Scope::Operator)
}

/// `None` for an invalid token; an error if its validity cannot be determined now.
fn if_valid(claims: Result<Arc<Claims>, TokenError>) -> Result<Option<Arc<Claims>>, OauthError> {
    match claims {
        Ok(claims) => Ok(Some(claims)),
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(OauthError::Unavailable),
        Err(_) => Ok(None),
    }
}
