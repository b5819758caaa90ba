//! Granting, revoking and explaining tokens.
//!
//! Every failure to prove who one is looks the same and takes at least the same time, whether the
//! client exists or not.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use diesel_async::AsyncConnection as _;
use domain::access::{Scope, Scopes};
use platform::{
    ErrorKind, Failure, chain,
    http::ClientIp,
    identity::{AUDIENCE, Claims, TokenError},
};
use secrecy::ExposeSecret;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    App, clients,
    credentials::{Credentials, Parameters},
    error::Error,
    revocations,
    store::{
        audit::{self, Entry},
        clients::Client,
    },
};

/// What an OAuth endpoint answers when it does not do as asked (RFC 6749, 5.2).
#[derive(Debug, thiserror::Error)]
pub(crate) enum OauthError {
    #[error("{0}")]
    InvalidRequest(String),
    #[error("client authentication failed")]
    InvalidClient { basic: bool },
    #[error("only client_credentials is supported")]
    UnsupportedGrantType,
    #[error("the client was not granted that scope")]
    InvalidScope,
    #[error("too many failed attempts, try again later")]
    TooOften(Duration),
    #[error("temporarily unavailable, please try again")]
    Unavailable,
    #[error("something went wrong on our side")]
    Internal,
}

impl OauthError {
    /// Logs the cause, once; the caller is told no more than whether to come back.
    fn because(error: &Error) -> Self {
        if error.kind() == ErrorKind::Unavailable {
            tracing::warn!(error = chain(error), "token endpoint");
            Self::Unavailable
        } else {
            tracing::error!(error = chain(error), "token endpoint");
            Self::Internal
        }
    }
}

/// A token and what it is good for.
pub(crate) struct Granted {
    pub(crate) access_token: String,
    pub(crate) claims: Claims,
}

/// The client credentials grant (RFC 6749, 4.4).
pub(crate) async fn grant(
    app: &App,
    mut parameters: Parameters,
    credentials: Option<Credentials>,
    peer: ClientIp,
) -> Result<Granted, OauthError> {
    let kind = parameters.take("grant_type");
    let kind =
        kind.ok_or_else(|| OauthError::InvalidRequest("grant_type is missing".to_owned()))?;
    if kind != "client_credentials" {
        return Err(OauthError::UnsupportedGrantType);
    }
    let wanted = parameters.take("scope").map(|scope| scope.parse::<Scopes>());
    let client = authenticate(app, credentials, peer).await?;
    let scope = match wanted {
        None => client.scopes.clone(),
        Some(Ok(wanted)) if !wanted.is_empty() && wanted.is_subset(&client.scopes) => wanted,
        Some(_) => return Err(OauthError::InvalidScope),
    };
    let claims = claims(app, &client, scope);
    let signed =
        app.keyring.sign(&claims, app.clock.now()).map_err(|error| OauthError::because(&error))?;
    let access_token = signed.ok_or(OauthError::Unavailable)?;
    Ok(Granted { access_token, claims })
}

fn claims(app: &App, client: &Client, scope: Scopes) -> Claims {
    let now = app.clock.now();
    let lifetime = TimeDelta::from_std(app.settings.tokens.lifetime).unwrap_or(TimeDelta::MAX);
    Claims {
        iss: app.settings.tokens.issuer.clone(),
        sub: client.id.clone(),
        aud: AUDIENCE.to_owned(),
        client_id: client.id.clone(),
        jti: Uuid::now_v7().to_string(),
        iat: now.timestamp(),
        exp: (now + lifetime).timestamp(),
        scope,
        merchant: client.merchant.clone(),
    }
}

/// The client that the credentials prove.
pub(crate) async fn authenticate(
    app: &App,
    credentials: Option<Credentials>,
    ClientIp(address): ClientIp,
) -> Result<Client, OauthError> {
    let started = Instant::now();
    let Some(Credentials { client_id, client_secret, basic }) = credentials else {
        return Err(OauthError::InvalidClient { basic: false });
    };
    let id = Some(client_id.as_str()).filter(|id| clients::is_possible(id));
    if let Some(wait) = app.brute_force.wait(address, id) {
        return Err(OauthError::TooOften(wait));
    }
    let known = app.clients.find(app, id).await;
    let known = known.map_err(|error: Arc<Error>| OauthError::because(&error))?;
    if let Some(client) = known.prove(client_secret.expose_secret(), app.clock.now()) {
        return Ok(client.clone());
    }
    app.brute_force.failed(address, id);
    tokio::time::sleep_until(started + app.brute_force.floor).await;
    Err(OauthError::InvalidClient { basic })
}

/// Revokes a token of the client's own (RFC 7009). A token that is not one, or not its own, is
/// nothing to tell about. Revoking again tells everyone once more.
pub(crate) async fn revoke(app: &App, client: &Client, token: &str) -> Result<(), OauthError> {
    let Some(claims) = good(app.verifier.read(token).await)? else { return Ok(()) };
    if claims.client_id != client.id && !client.scopes.contains(Scope::Operator) {
        return Ok(());
    }
    let revoked = async {
        let now = app.clock.now();
        let mut conn = app.pool.get().await?;
        conn.transaction(async |conn| {
            let entry = Entry {
                actor: &client.id,
                action: "token.revoked",
                subject: format!("token/{}", claims.jti),
                merchant: claims.merchant.as_ref(),
                detail: serde_json::json!({ "client_id": claims.client_id }),
            };
            audit::write(conn, entry, now).await?;
            revocations::revoke_token(app, conn, &claims, now).await
        })
        .await
    };
    let revocation = revoked.await.map_err(|error: Error| OauthError::because(&error))?;
    app.verifier.revocations().add(revocation);
    Ok(())
}

/// What a token says, if it is good and the client may know (RFC 7662).
pub(crate) async fn introspect(
    app: &App,
    client: &Client,
    token: &str,
) -> Result<Option<Arc<Claims>>, OauthError> {
    let claims = good(app.verifier.verify(token).await)?;
    let may_know = |claims: &Arc<Claims>| {
        claims.client_id == client.id || client.scopes.contains(Scope::Operator)
    };
    Ok(claims.filter(may_know))
}

/// The claims of a token, nothing if it is no good; an error while that cannot be told.
fn good(read: Result<Arc<Claims>, TokenError>) -> Result<Option<Arc<Claims>>, OauthError> {
    match read {
        Ok(claims) => Ok(Some(claims)),
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(OauthError::Unavailable),
        Err(_) => Ok(None),
    }
}
