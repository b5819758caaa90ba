//! Sign-in with a password and, if the person has TOTP, a code.
//!
//! All failures get the same response after the same time, so that a caller can find out neither which
//! people exist nor whether the password was right. The audit log has the reason.

use std::net::IpAddr;

use diesel_async::AsyncPgConnection;
use domain::json::{Field, Object, text};
use platform::{Timestamp, limits::network};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    App,
    browser::Browser,
    email::Email,
    error::Error,
    people as all_people, recovery_codes,
    sessions::{self, StartedSession},
    store::{
        audit,
        people::{self, Person, State},
        recovery_codes as stored_codes,
    },
    totp,
};

/// Longer values are not read.
const MAX_LENGTH: usize = 1000;
/// A person with this many wrong codes in a row needs a new invitation.
const MAX_WRONG_CODES: i32 = 100;
/// Author of refused sign-ins in the audit log, because the person is not known.
const ACTOR: &str = "sign_in";

/// The reason why a sign-in of a person was refused, for the audit log.
type Reason = &'static str;

/// The credentials of a person.
pub(crate) struct SignIn {
    email: String,
    password: SecretString,
    /// A TOTP code or a recovery code.
    code: Option<SecretString>,
    browser: Browser,
}

impl SignIn {
    pub(crate) fn read(body: &Object<'_>, address: IpAddr) -> Option<Self> {
        body.reject_unknown(&[&["email", "password", "totp_code"][..], &Browser::FIELDS].concat());
        let email = body.required("email", text(0..=MAX_LENGTH));
        let password = body.required("password", secret);
        let code = read_code(body);
        let browser = Browser::read(body, address);
        Some(Self { email: email?, password: password?, code: code?, browser: browser? })
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

/// Starts a session if the credentials are right.
pub(crate) async fn sign_in(app: &App, credentials: SignIn) -> Result<StartedSession, Error> {
    if !app.settings.people.passwords {
        return Err(Error::PasswordsDisabled);
    }
    let started_at = Instant::now();
    let SignIn { email, password, code, browser } = credentials;
    let (email, address) = (email.trim().parse::<Email>().ok(), browser.address);
    let account = email.as_ref().map(Email::as_str);
    app.brute_force.check(address, account)?;
    let person = match &email {
        Some(email) => find(app, email, address).await?,
        None => None,
    };
    // Without a person this takes as long as with one.
    let hash = person.as_ref().and_then(|person| person.password_hash.as_deref());
    let is_right = app.passwords.matches(password, hash).await?;
    if let Some(person) = &person
        && let Some(started) = admit(app, person, is_right, code.as_ref(), browser).await?
    {
        return Ok(started);
    }
    if let Some(account) = account {
        app.brute_force.record_person_failure(account);
    }
    app.brute_force.refuse(address, account, started_at).await;
    Err(Error::SignInFailed(person.map(|person| person.email)))
}

/// The person with this e-mail address. Too many failures are an error, except at the address of the
/// person's last sign-in: otherwise anyone could lock the person out.
async fn find(app: &App, email: &Email, address: IpAddr) -> Result<Option<Person>, Error> {
    let person = people::find(&mut *app.pool.get().await?, email).await?;
    let address = network(address).to_string();
    let last = person.as_ref().and_then(|person| person.last_address.as_ref());
    if last != Some(&address) {
        app.brute_force.check_person(email.as_str())?;
    }
    Ok(person)
}

/// Starts a session if password and code are right. Otherwise the audit log gets the reason.
async fn admit(
    app: &App,
    person: &Person,
    is_right: bool,
    code: Option<&SecretString>,
    browser: Browser,
) -> Result<Option<StartedSession>, Error> {
    let (address, user_agent) = (browser.address, browser.user_agent.clone());
    let started =
        if is_right { start_session(app, person, code, browser).await? } else { Err("password") };
    match started {
        Ok(started) => {
            app.brute_force.clear_failures(person.email.as_str());
            Ok(Some(started))
        }
        Err(reason) => {
            let detail = json!({ "reason": reason, "address": address, "user_agent": user_agent });
            let record = all_people::record(ACTOR, "session.refused", person, detail);
            audit::insert(&mut *app.pool.get().await?, record, app.clock.now()).await?;
            Ok(None)
        }
    }
}

/// Starts a session of a person whose password was right, if the code is right too.
async fn start_session(
    app: &App,
    verified: &Person,
    code: Option<&SecretString>,
    browser: Browser,
) -> Result<Result<StartedSession, Reason>, Error> {
    if code.is_some() && !app.brute_force.allows_code(verified.email.as_str()) {
        return Ok(Err("too_many_codes"));
    }
    let now = app.clock.now();
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let mut person = people::lock(conn, &verified.email).await?;
        // The password may have changed while it was verified.
        if person.password_hash != verified.password_hash {
            return Ok(Err("password"));
        }
        if person.state != State::Active {
            return Ok(Err("state"));
        }
        if person.wrong_codes >= MAX_WRONG_CODES {
            return Ok(Err("new_invitation_needed"));
        }
        let is_accepted = accepts_code(app, conn, &mut person, code, now).await?;
        person.wrong_codes = match (is_accepted, code) {
            (true, _) => 0,
            (false, Some(_)) => person.wrong_codes + 1,
            (false, None) => person.wrong_codes,
        };
        people::save(conn, &person).await?;
        if !is_accepted {
            return Ok(Err("code"));
        }
        sessions::start(app, conn, &person, browser).await.map(Ok)
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
