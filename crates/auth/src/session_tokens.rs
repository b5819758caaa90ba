//! Access tokens of sessions. A session gets the same token until half of its lifetime is over.

use std::{net::IpAddr, time::Duration};

use chrono::TimeDelta;
use moka::sync::Cache;
use platform::identity::Claims;
use uuid::Uuid;

use crate::{
    App,
    error::Error,
    store::{people::Person, sessions::Session},
    token_lifetimes::PERSON_TOKEN_LIFETIME,
    tokens,
};

/// `client_id` of a person's token.
const CLIENT_ID: &str = "console";
const MIN_REMAINING: TimeDelta = TimeDelta::minutes(5);
const MAX_TOKENS: u64 = 10_000;

/// A signed token and its end as Unix time.
#[derive(Clone)]
pub(crate) struct IssuedToken {
    pub(crate) token: String,
    pub(crate) expires_at: i64,
}

/// The newest token of each session.
pub(crate) struct SessionTokens(Cache<Uuid, IssuedToken>);

impl SessionTokens {
    pub(crate) fn new() -> Self {
        let lifetime = PERSON_TOKEN_LIFETIME.to_std().unwrap_or(Duration::ZERO);
        Self(Cache::builder().max_capacity(MAX_TOKENS).time_to_live(lifetime).build())
    }

    /// A token that is valid for more than five minutes, unless the session ends before. The caller has
    /// checked the session.
    pub(crate) fn get_or_issue(
        &self,
        app: &App,
        person: &Person,
        session: &Session,
        address: IpAddr,
    ) -> Result<IssuedToken, Error> {
        let reused_until = (app.clock.now() + MIN_REMAINING).timestamp();
        if let Some(issued) = self.0.get(&session.id)
            && issued.expires_at > reused_until
        {
            return Ok(issued);
        }
        let issued = issue(app, person, session, address)?;
        self.0.insert(session.id, issued.clone());
        Ok(issued)
    }
}

/// A token never outlives its session.
fn issue(
    app: &App,
    person: &Person,
    session: &Session,
    address: IpAddr,
) -> Result<IssuedToken, Error> {
    let now = app.clock.now();
    let email = person.email.as_str();
    let scope = person.role.scopes();
    let lifetime = PERSON_TOKEN_LIFETIME.min(session.expires_at - now);
    let claims = Claims {
        client_id: CLIENT_ID.to_owned(),
        sid: Some(session.id),
        ..tokens::claims(app, email, scope, person.merchant.clone(), lifetime)
    };
    let token = app.signing_keys.sign(&claims, now)?.ok_or(Error::NoSigningKey)?;
    tokens::record_grant(app, &claims, address);
    Ok(IssuedToken { token, expires_at: claims.exp })
}
