//! Signing in with an OpenID provider: the authorization code flow with PKCE, state and nonce.
//!
//! State, nonce and PKCE verifier are sealed into the flow, which the console keeps in a cookie. A flow
//! works as often as its code, and a provider accepts a code once.

mod id_token;
mod keys;
pub(crate) mod provider;
pub(crate) mod settings;

use std::net::IpAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::{access::MerchantId, json::FieldError, merchant::Sealed};
use oauth2::{CsrfToken, PkceCodeChallenge, RedirectUrl, Scope};
use platform::chain;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use utoipa::ToSchema;

use self::{
    id_token::{PersonClaims, Rejection},
    provider::{Provider, ProviderError},
    settings::Settings,
};
use crate::{
    App,
    email::Email,
    error::Error,
    people::{self, NewPerson, PersonChange},
    roles::Role,
    sessions::{self, StartedSession},
    store::{
        self, audit,
        people::{Person, State},
    },
};

const FLOW_LIFETIME: TimeDelta = TimeDelta::minutes(10);
const SEALING_CONTEXT: &str = "oidc-flow";
const RANDOM_BYTES: u32 = 32;
const MAX_NAME_CHARS: usize = 200;
/// Author of changes of people in the audit log.
const ACTOR: &str = "oidc";

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

/// The secrets of one sign-in.
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
    pub(crate) flow: String,
    pub(crate) code: String,
    pub(crate) state: String,
}

/// A person as the provider describes it.
struct Identity {
    email: Email,
    name: Option<String>,
    role: Role,
    merchant: Option<MerchantId>,
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
    address: IpAddr,
    user_agent: Option<String>,
) -> Result<StartedSession, Error> {
    let Oidc(provider) = app.oidc.as_ref().ok_or(Error::NoOidcProvider)?;
    let started_at = Instant::now();
    app.brute_force.check(address, None)?;
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
    let identity = read_identity(provider, &claims).map_err(|error| match error {
        IdentityError::Rejected(rejection) => refused(&rejection, address),
        IdentityError::NoRole => no_role("is in none of the groups in oidc.roles".to_owned()),
    })?;
    let mut conn = app.pool.get().await?;
    let signed_in = conn.transaction(async |conn| {
        let person = save_person(app, conn, identity).await?;
        sessions::start(app, conn, &person, address, user_agent).await
    });
    signed_in.await.map_err(|error| match error {
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
    Ok(Identity { email, name, role: mapping.role, merchant: mapping.merchant.clone() })
}

/// Creates the person, or gives it the name, role and merchant of the provider.
async fn save_person(
    app: &App,
    conn: &mut AsyncPgConnection,
    identity: Identity,
) -> Result<Person, Error> {
    let Identity { email, name, role, merchant } = identity;
    if people::find(conn, &email).await?.is_none() {
        let name = name.unwrap_or_else(|| email.to_string());
        let new = NewPerson { email, name, role, merchant };
        let person = people::create(conn, new, State::Active, app.clock.now()).await?;
        let detail = json!({ "role": person.role, "merchant": person.merchant });
        let record = people::record(ACTOR, "person.created", &person, detail);
        audit::insert(conn, record, app.clock.now()).await?;
        return Ok(person);
    }
    let mut person = people::lock(conn, &email).await?;
    // The provider does not undo that an operator disabled the person.
    if person.state == State::Disabled {
        return Err(Error::SignInFailed(Some(email)));
    }
    person.state = State::Active;
    // A password of an operator needs TOTP, so this person signs in with the provider only.
    if role == Role::Operator && person.totp_secret.is_none() {
        person.password_hash = None;
    }
    store::people::save(conn, &person).await?;
    let change = PersonChange { name, role: Some(role), merchant: Some(merchant) };
    people::change(app, conn, ACTOR, &mut person, change).await?;
    Ok(person)
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
