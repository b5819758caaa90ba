//! Signing in with an OpenID provider: the authorization code flow with PKCE, state and nonce.
//!
//! State, nonce and PKCE verifier are sealed into the flow, which the console keeps in a cookie. A flow
//! works as often as its code, and a provider accepts a code once.
//!
//! See docs/decisions/openid-connect.md.

mod id_token;
mod keys;
mod person;
mod provider;
pub(crate) mod settings;

use std::net::IpAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{json::FieldError, merchant::Sealed};
use oauth2::{CsrfToken, PkceCodeChallenge, RedirectUrl, Scope};
use platform::chain;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use utoipa::ToSchema;

use self::{
    id_token::{PersonClaims, Rejection},
    person::Identity,
    provider::Provider,
    settings::Settings,
};
use crate::{
    App,
    browser::Browser,
    error::Error,
    provider_error::ProviderError,
    sessions::{self, StartedSession},
    store::people::OidcSubject,
};

const FLOW_LIFETIME: TimeDelta = TimeDelta::minutes(10);
const SEALING_CONTEXT: &str = "oidc-flow";
const RANDOM_BYTES: u32 = 32;
const MAX_NAME_CHARS: usize = 200;

/// The configured provider.
pub(crate) struct Oidc(Provider);

impl Oidc {
    /// `None` without a configured provider.
    pub(crate) fn new(settings: &Settings, redirect_url: String) -> anyhow::Result<Option<Self>> {
        if !settings.is_enabled() {
            return Ok(None);
        }
        let provider = Provider::new(settings.clone(), RedirectUrl::new(redirect_url)?)?;
        Ok(Some(Self(provider)))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.settings.name
    }
}

/// The secrets of one sign-in, which the console keeps sealed in a cookie.
#[derive(Serialize, Deserialize)]
struct Flow {
    state: String,
    nonce: String,
    verifier: String,
    expires_at: DateTime<Utc>,
}

/// The beginning of a sign-in.
#[derive(Serialize, ToSchema)]
pub(crate) struct StartedFlow {
    /// The page of the provider to which the browser is sent.
    authorization_url: String,
    /// The encrypted state of this sign-in, valid for 10 minutes. Keep it in a cookie of the browser.
    flow: String,
}

/// The parameters with which the browser comes back from the provider.
pub(crate) struct Callback {
    /// The sealed [`Flow`] from the cookie.
    pub(crate) flow: String,
    pub(crate) code: String,
    pub(crate) state: String,
}

pub(crate) async fn start(app: &App) -> Result<StartedFlow, Error> {
    let Oidc(provider) = app.oidc.as_ref().ok_or(Error::NoOidcProvider)?;
    let client = provider.oauth_client().await?;
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let nonce = CsrfToken::new_random_len(RANDOM_BYTES).into_secret();
    let scopes = provider.settings.scopes.iter().cloned().map(Scope::new);
    let (authorization_url, state) = client
        .authorize_url(|| CsrfToken::new_random_len(RANDOM_BYTES))
        .add_scopes(scopes)
        .set_pkce_challenge(challenge)
        .add_extra_param("nonce", nonce.as_str())
        .url();
    let flow = Flow {
        state: state.into_secret(),
        nonce,
        verifier: verifier.into_secret(),
        expires_at: app.clock.now() + FLOW_LIFETIME,
    };
    let Sealed(flow) = app.sealer.seal(SEALING_CONTEXT, &serde_json::to_string(&flow)?)?;
    Ok(StartedFlow { authorization_url: authorization_url.into(), flow })
}

/// Starts a session of the person who signed in at the provider. The person is created or updated.
pub(crate) async fn finish(
    app: &App,
    callback: Callback,
    browser: Browser,
) -> Result<StartedSession, Error> {
    let Oidc(provider) = app.oidc.as_ref().ok_or(Error::NoOidcProvider)?;
    let started_at = Instant::now();
    let address = browser.address;
    let claims = match identify(app, provider, callback).await {
        Ok(claims) => claims,
        Err(Rejection::Provider(error)) if !matches!(error, ProviderError::InvalidCode) => {
            return Err(error.into());
        }
        Err(rejection) => {
            app.brute_force.refuse(address, None, started_at).await;
            return Err(refused(&rejection, address));
        }
    };
    let identity = match read_identity(provider, &claims) {
        Ok(identity) => identity,
        Err(IdentityError::Rejected(rejection)) => return Err(refused(&rejection, address)),
        Err(IdentityError::NoRole) => {
            person::disable(app, &subject(provider, &claims)).await?;
            return Err(no_role("is in none of the groups in oidc.roles".to_owned()));
        }
    };
    let mut conn = app.pool.get().await?;
    let signed_in = conn.transaction(async |conn| {
        let person = person::save(app, conn, identity).await?;
        sessions::start(app, conn, &person, browser).await
    });
    signed_in.await.map_err(|error| match error {
        Error::OidcFailed => refused(&Rejection::OtherSubject, address),
        Error::SignInFailed(_) => refused(&Rejection::Disabled, address),
        Error::MerchantNotFound(id) => {
            no_role(format!("belongs to merchant {id}, which is missing"))
        }
        error => error,
    })
}

/// The claims about the person who signed in at the provider.
async fn identify(
    app: &App,
    provider: &Provider,
    callback: Callback,
) -> Result<PersonClaims, Rejection> {
    let Callback { flow, code, state } = callback;
    let now = app.clock.now();
    let opened = app.sealer.open(SEALING_CONTEXT, &Sealed(flow));
    let flow = opened.map_err(|_damaged| Rejection::Flow("damaged"))?;
    let flow: Flow = serde_json::from_str(flow.expose_secret())
        .map_err(|_unreadable| Rejection::Flow("unreadable"))?;
    if flow.expires_at <= now {
        return Err(Rejection::Flow("expired"));
    }
    verify_slices_are_equal(state.as_bytes(), flow.state.as_bytes())
        .map_err(|_differs| Rejection::Flow("for another state"))?;
    let token = provider.id_token(code, flow.verifier).await?;
    id_token::verify(provider, &token, &flow.nonce, now, FLOW_LIFETIME).await
}

fn subject(provider: &Provider, claims: &PersonClaims) -> OidcSubject {
    OidcSubject { issuer: provider.settings.issuer.clone(), subject: claims.sub.clone() }
}

enum IdentityError {
    Rejected(Rejection),
    NoRole,
}

fn read_identity(provider: &Provider, claims: &PersonClaims) -> Result<Identity, IdentityError> {
    let settings = &provider.settings;
    let rejected = |claim| IdentityError::Rejected(Rejection::IdToken(claim));
    let email = claims.email.as_ref().and_then(|email| email.parse().ok());
    let email = email.ok_or_else(|| rejected("email"))?;
    if !claims.email_verified().unwrap_or(!settings.require_verified_email) {
        return Err(rejected("email_verified"));
    }
    let groups = claims.groups(&settings.groups_claim);
    let mapping = settings.roles.iter().find(|mapping| groups.contains(&mapping.group.as_str()));
    let mapping = mapping.ok_or(IdentityError::NoRole)?;
    let name = claims.name.as_ref().map(|name| {
        name.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect::<String>()
    });
    let name = name.filter(|name| !name.trim().is_empty());
    let oidc = subject(provider, claims);
    let merchant = mapping.merchant.clone();
    Ok(Identity { oidc, email, name, role: mapping.role, merchant })
}

/// Logs the reason, which is not part of the response.
fn refused(rejection: &Rejection, address: IpAddr) -> Error {
    let reason = chain(rejection);
    tracing::info!(reason, remote_address = %address, "sign-in with the OpenID provider refused");
    Error::OidcFailed
}

fn no_role(detail: String) -> Error {
    Error::NoRole(vec![FieldError::invalid("$.groups", format!("the person {detail}"))])
}
