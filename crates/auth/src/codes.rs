//! TOTP codes and recovery codes of people whose password was right.

use diesel_async::AsyncPgConnection;
use secrecy::{ExposeSecret as _, SecretString};

use crate::{
    App,
    error::Error,
    recovery_codes,
    store::{
        people::{self, Person, State},
        recovery_codes as stored_codes,
    },
    totp,
};

/// A person with this many wrong codes in a row needs a new invitation.
const MAX_WRONG_CODES: i32 = 100;

/// The reason why a person was refused, for the audit log.
pub(crate) type Reason = &'static str;

/// Locks a person whose password was right, if the code is right too. A code works once, and wrong codes are
/// counted, so the caller commits the transaction in both cases.
pub(crate) async fn lock_person(
    app: &App,
    conn: &mut AsyncPgConnection,
    verified: &Person,
    code: Option<&SecretString>,
) -> Result<Result<Person, Reason>, Error> {
    if code.is_some() && !app.brute_force.allows_code(verified.email.as_str()) {
        return Ok(Err("too_many_codes"));
    }
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
    let is_accepted = accepts_code(app, conn, &mut person, code).await?;
    person.wrong_codes = match (is_accepted, code) {
        (true, _) => 0,
        (false, Some(_)) => person.wrong_codes + 1,
        (false, None) => person.wrong_codes,
    };
    people::save(conn, &person).await?;
    Ok(if is_accepted { Ok(person) } else { Err("code") })
}

/// Whether a code is right and was not used before. A person without TOTP needs no code.
async fn accepts_code(
    app: &App,
    conn: &mut AsyncPgConnection,
    person: &mut Person,
    code: Option<&SecretString>,
) -> Result<bool, Error> {
    let Some(secret) = &person.totp_secret else { return Ok(true) };
    let Some(code) = code.map(|code| code.expose_secret()) else { return Ok(false) };
    let secret = totp::open(&app.sealer, &person.email, secret)?;
    if let Some(step) = totp::step(&person.email, &secret, code, app.clock.now())? {
        let is_unused = person.totp_step.is_none_or(|last| step > last);
        person.totp_step = person.totp_step.max(Some(step));
        return Ok(is_unused);
    }
    stored_codes::take(conn, &person.email, recovery_codes::hash(code)).await
}
