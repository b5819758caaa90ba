//! Sign-in with a password and, if the person has TOTP, a code.
//!
//! All failures get the same response after the same time, so that a caller can find out neither which
//! people exist nor whether the password was right.

use std::net::IpAddr;

use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::json::{Field, Object, text};
use platform::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::Instant;

use crate::{
    App,
    email::Email,
    error::Error,
    recovery_codes,
    sessions::{self, StartedSession},
    store::{
        people::{self, Person, State},
        recovery_codes as stored_codes,
    },
    totp,
};

/// Longer values are not read.
const MAX_LENGTH: usize = 1000;
/// Longer user agents are truncated.
const MAX_USER_AGENT: usize = 300;

/// The credentials of a person.
pub(crate) struct SignIn {
    email: String,
    password: SecretString,
    /// A TOTP code or a recovery code.
    code: Option<SecretString>,
    user_agent: Option<String>,
}

impl SignIn {
    pub(crate) fn read(body: &Object<'_>) -> Option<Self> {
        body.reject_unknown(&["email", "password", "totp_code", "user_agent"]);
        let email = body.required("email", text(0..=MAX_LENGTH));
        let password = body.required("password", secret);
        let code = read_code(body);
        let user_agent = read_user_agent(body);
        Some(Self { email: email?, password: password?, code: code?, user_agent: user_agent? })
    }
}

/// Reads a secret without rules for it.
pub(crate) fn secret(field: Field<'_>) -> Option<SecretString> {
    text(0..=MAX_LENGTH)(field).map(SecretString::from)
}

/// Reads `totp_code`. An empty text of a form means that there is no code.
pub(crate) fn read_code(body: &Object<'_>) -> Option<Option<SecretString>> {
    let code = body.optional("totp_code", secret)?;
    Some(code.filter(|code| !code.expose_secret().trim().is_empty()))
}

pub(crate) fn read_user_agent(body: &Object<'_>) -> Option<Option<String>> {
    let user_agent = body.optional("user_agent", text(0..=100 * MAX_LENGTH))?;
    Some(user_agent.map(|text| text.chars().take(MAX_USER_AGENT).collect()))
}

/// Starts a session if the credentials are right.
pub(crate) async fn sign_in(
    app: &App,
    credentials: SignIn,
    address: IpAddr,
) -> Result<StartedSession, Error> {
    if !app.settings.people.passwords {
        return Err(Error::PasswordsDisabled);
    }
    let started_at = Instant::now();
    let SignIn { email, password, code, user_agent } = credentials;
    let email = email.trim().parse::<Email>().ok();
    let account = email.as_ref().map(Email::as_str);
    app.brute_force.check(address, account)?;
    let person = match &email {
        Some(email) => people::find(&mut *app.pool.get().await?, email).await?,
        None => None,
    };
    // Without a person this takes as long as with one.
    let hash = person.as_ref().and_then(|person| person.password_hash.as_deref());
    let is_right = app.passwords.matches(password, hash).await?;
    if is_right && let Some(person) = &person {
        let started = start_session(app, person, code.as_ref(), address, user_agent).await?;
        if let Some(started) = started {
            return Ok(started);
        }
    }
    app.brute_force.refuse(address, account, started_at).await;
    Err(Error::SignInFailed(person.map(|person| person.email)))
}

/// Starts a session of a person whose password was right, if the code is right too.
async fn start_session(
    app: &App,
    verified: &Person,
    code: Option<&SecretString>,
    address: IpAddr,
    user_agent: Option<String>,
) -> Result<Option<StartedSession>, Error> {
    if code.is_some() && !app.brute_force.allows_code(verified.email.as_str()) {
        return Ok(None);
    }
    let now = app.clock.now();
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let mut person = people::lock(conn, &verified.email).await?;
        // The password may have changed while it was verified.
        let is_current = person.password_hash == verified.password_hash;
        if !is_current || person.state != State::Active {
            return Ok(None);
        }
        if !accepts_code(app, conn, &mut person, code, now).await? {
            return Ok(None);
        }
        people::save(conn, &person).await?;
        sessions::start(app, conn, &person, address, user_agent).await.map(Some)
    })
    .await
}

/// Whether a code is right and was not used before. A person without TOTP needs no code.
async fn accepts_code(
    app: &App,
    conn: &mut AsyncPgConnection,
    person: &mut Person,
    code: Option<&SecretString>,
    now: Timestamp,
) -> Result<bool, Error> {
    let Some(secret) = &person.totp_secret else { return Ok(true) };
    let Some(code) = code.map(|code| code.expose_secret()) else { return Ok(false) };
    let secret = totp::open(&app.sealer, &person.email, secret)?;
    if let Some(step) = totp::step(&person.email, &secret, code, now)? {
        let is_unused = person.totp_step.is_none_or(|last| step > last);
        person.totp_step = person.totp_step.max(Some(step));
        return Ok(is_unused);
    }
    stored_codes::take(conn, &person.email, recovery_codes::hash(code)).await
}
