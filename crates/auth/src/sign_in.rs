//! Sign-in with a password and, if the person has TOTP, a code.
//!
//! All failures get the same response after the same time, so that a caller can find out neither which
//! people exist nor whether the password was right. The audit log has the reason.

use std::net::IpAddr;

use domain::json::{Field, Object, text};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    App,
    browser::Browser,
    codes::{self, Reason},
    email::Email,
    error::Error,
    people as all_people,
    sessions::{self, StartedSession},
    store::{
        audit,
        people::{self, Person},
    },
};

/// Longer values are not read.
const MAX_LENGTH: usize = 1000;
/// Author of refused sign-ins in the audit log, because the person is not known.
const ACTOR: &str = "sign_in";

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
    let email = email.trim().parse::<Email>().ok();
    let address = browser.address;
    let account = email.as_ref().map(Email::as_str);
    app.brute_force.check(address, account)?;
    let wait = account.and_then(|account| app.brute_force.wait(account));
    let person = match &email {
        Some(email) => people::find(&mut *app.pool.get().await?, email).await?,
        None => None,
    };
    // Without a person, and during the wait, this takes as long as with one.
    let hash = person.as_ref().and_then(|person| person.password_hash.as_deref());
    let is_right = app.passwords.matches(password, hash, address).await?;
    // Others cannot lock a person out of the address of the last sign-in: there the right credentials work
    // during the wait too. Wrong ones get the response that they get for a person who does not exist.
    let may_try = |person: &&Person| wait.is_none() || person.signed_in_last_from(address);
    if let Some(person) = person.as_ref().filter(may_try)
        && let Some(started) = admit(app, person, is_right, code.as_ref(), browser).await?
    {
        return Ok(started);
    }
    if let (Some(account), None) = (account, wait) {
        app.brute_force.record_person_failure(account);
    }
    app.brute_force.refuse(address, account, started_at).await;
    Err(match wait {
        Some(wait) => Error::LockedOut(wait),
        None => Error::SignInFailed(person.map(|person| person.email)),
    })
}

/// Starts a session if password and code are right. Otherwise the audit log gets the reason.
async fn admit(
    app: &App,
    person: &Person,
    is_right: bool,
    code: Option<&SecretString>,
    browser: Browser,
) -> Result<Option<StartedSession>, Error> {
    let address = browser.address;
    let user_agent = browser.user_agent.clone();
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
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| match codes::lock_person(app, conn, verified, code).await? {
        Ok(person) => sessions::start(app, conn, &person, browser).await.map(Ok),
        Err(reason) => Ok(Err(reason)),
    })
    .await
}
