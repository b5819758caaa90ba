//! The own account of a signed-in person: password and recovery codes.

use std::net::IpAddr;

use domain::json::Object;
use platform::identity::Caller;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    App,
    email::Email,
    ended_sessions,
    error::Error,
    passwords, people, recovery_codes,
    sign_in::secret,
    store::{
        audit,
        people::{self as stored_people, Person},
        recovery_codes as stored_codes,
    },
};

/// The person who sent a request.
pub(crate) struct SignedIn {
    pub(crate) email: Email,
    pub(crate) session: Uuid,
}

impl SignedIn {
    /// Rejects the token of a client.
    pub(crate) fn of(caller: &Caller) -> Result<Self, Error> {
        let session = caller.claims.sid.ok_or(Error::NotAPerson)?;
        let email = caller.actor().parse().map_err(|_not_an_address| Error::NotAPerson)?;
        Ok(Self { email, session })
    }
}

/// New recovery codes. Only this response contains them.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecoveryCodes {
    /// Each replaces a TOTP code once.
    recovery_codes: Vec<String>,
}

/// A change of the own password.
pub(crate) struct PasswordChange {
    current: SecretString,
    new: SecretString,
}

impl PasswordChange {
    pub(crate) fn read(body: &Object<'_>) -> Option<Self> {
        body.reject_unknown(&["current_password", "new_password"]);
        let current = body.required("current_password", secret);
        let new = body.required("new_password", passwords::read_new);
        Some(Self { current: current?, new: new? })
    }
}

/// Changes the password and ends all other sessions.
pub(crate) async fn change_password(
    app: &App,
    signed_in: &SignedIn,
    change: PasswordChange,
    address: IpAddr,
) -> Result<(), Error> {
    let PasswordChange { current, new } = change;
    let verified = verify(app, signed_in, "$.current_password", current, address).await?;
    passwords::check("$.new_password", &new, &verified.email)?;
    let hash = app.passwords.hash(new).await?;
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let mut person = stored_people::lock(conn, &verified.email).await?;
        // Another request may have changed the password meanwhile.
        if person.password_hash != verified.password_hash {
            return Err(passwords::wrong("$.current_password").into());
        }
        person.password_hash = Some(hash);
        stored_people::save(conn, &person).await?;
        let (actor, current) = (person.email.as_str(), Some(signed_in.session));
        ended_sessions::end_all(app, conn, actor, &person, current).await?;
        let record = people::record(actor, "password.changed", &person, json!({}));
        audit::insert(conn, record, app.clock.now()).await
    })
    .await
}

/// Replaces the recovery codes.
pub(crate) async fn replace_recovery_codes(
    app: &App,
    signed_in: &SignedIn,
    password: SecretString,
    address: IpAddr,
) -> Result<RecoveryCodes, Error> {
    let person = verify(app, signed_in, "$.password", password, address).await?;
    if person.totp_secret.is_none() {
        return Err(Error::NoTotp(person.email));
    }
    let recovery_codes = recovery_codes::generate()?;
    let hashes = recovery_codes.iter().map(|code| recovery_codes::hash(code)).collect();
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        // Two requests at the same time would otherwise leave the codes of both.
        stored_people::lock(conn, &person.email).await?;
        stored_codes::replace(conn, &person.email, hashes).await?;
        let actor = person.email.as_str();
        let record = people::record(actor, "recovery_codes.replaced", &person, json!({}));
        audit::insert(conn, record, app.clock.now()).await
    })
    .await?;
    Ok(RecoveryCodes { recovery_codes })
}

/// The signed-in person, if the password is right. `field` is the password's field in the request.
async fn verify(
    app: &App,
    signed_in: &SignedIn,
    field: &str,
    password: SecretString,
    address: IpAddr,
) -> Result<Person, Error> {
    let (started_at, account) = (Instant::now(), Some(signed_in.email.as_str()));
    app.brute_force.check(address, account)?;
    let person = people::find(&mut *app.pool.get().await?, &signed_in.email).await?;
    let hash = person.as_ref().and_then(|person| person.password_hash.as_deref());
    let is_right = app.passwords.matches(password, hash).await?;
    if let Some(person) = person.filter(|_| is_right) {
        return Ok(person);
    }
    app.brute_force.refuse(address, account, started_at).await;
    Err(passwords::wrong(field).into())
}
