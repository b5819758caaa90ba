//! The proof that a change of credentials comes from the person, and not from a thief of the session.
//!
//! Wrong passwords and codes count for the person, as failed sign-ins do. They are in the audit log, and some
//! of them end the session.

use std::net::IpAddr;

use diesel_async::AsyncPgConnection;
use domain::json::{Code, FieldError, Object, ValidationError};
use secrecy::SecretString;
use serde_json::json;
use tokio::time::Instant;

use super::SignedIn;
use crate::{
    App,
    codes::{self, Reason},
    ended_sessions,
    error::Error,
    passwords, people,
    sign_in::{read_code, secret},
    store::{
        audit,
        people::{self as stored_people, Person},
        sessions,
    },
    totp,
};

const CODE: &str = "$.totp_code";
/// A session ends after this many refusals.
const MAX_REFUSALS: i32 = 5;

/// The password of a person and, if the person has TOTP, a code.
pub(crate) struct Proof {
    /// The password's field in the request.
    field: &'static str,
    password: SecretString,
    /// A TOTP code or a recovery code.
    code: Option<SecretString>,
}

impl Proof {
    /// Reads `totp_code` and the password in the field of this name.
    pub(super) fn read(body: &Object<'_>, name: &str, field: &'static str) -> Option<Self> {
        let password = body.required(name, secret);
        let code = read_code(body);
        Some(Self { field, password: password?, code: code? })
    }

    /// The signed-in person, if password and code are right and there are no `faults` of other fields. The code is
    /// used up only then. All faults are reported together.
    pub(super) async fn verify(
        self,
        app: &App,
        signed_in: &SignedIn,
        address: IpAddr,
        faults: Vec<FieldError>,
    ) -> Result<Person, Error> {
        let verified = self.verify_password(app, signed_in, address, faults).await?;
        verified.verify_code().await
    }

    /// Verifies the password only. [`PasswordVerified::verify_code`] is the second half of [`Self::verify`].
    pub(super) async fn verify_password<'a>(
        self,
        app: &'a App,
        signed_in: &'a SignedIn,
        address: IpAddr,
        mut faults: Vec<FieldError>,
    ) -> Result<PasswordVerified<'a>, Error> {
        let attempt = Attempt { app, signed_in, address, started_at: Instant::now() };
        let account = signed_in.email.as_str();
        app.brute_force.check(address, Some(account))?;
        let person = find(app, signed_in).await?;
        if let Some(wait) = app.brute_force.wait(account)
            && !person.signed_in_last_from(address)
        {
            return Err(Error::LockedOut(wait));
        }
        if person.totp_secret.is_some() && self.code.is_none() {
            let field = CODE.to_owned();
            faults.push(FieldError { field, code: Code::MissingField, detail: None });
        }
        let hash = person.password_hash.as_deref();
        if app.passwords.matches(self.password, hash, address).await? {
            Ok(PasswordVerified { attempt, person, code: self.code, faults })
        } else {
            let fault = passwords::wrong(self.field);
            Err(attempt.refuse(&person, "password", fault, faults).await)
        }
    }
}

/// A request of a person with the right password, whose code is not verified yet.
pub(super) struct PasswordVerified<'a> {
    attempt: Attempt<'a>,
    person: Person,
    /// A TOTP code or a recovery code.
    pub(super) code: Option<SecretString>,
    faults: Vec<FieldError>,
}

impl PasswordVerified<'_> {
    /// The person, if the code is right and no other field has a fault.
    pub(super) async fn verify_code(self) -> Result<Person, Error> {
        let Self { attempt, person, code, faults } = self;
        match check_code(attempt.app, &person, code.as_ref(), &faults).await? {
            Ok(verified) => Ok(verified),
            Err(reason) => {
                Err(attempt.refuse(&person, reason, totp::wrong_code(CODE), faults).await)
            }
        }
    }
}

/// An attempt of a signed-in person to prove who they are.
struct Attempt<'a> {
    app: &'a App,
    signed_in: &'a SignedIn,
    address: IpAddr,
    started_at: Instant,
}

impl Attempt<'_> {
    /// Counts and records a refusal. Returns the error of the request, which has `fault` before the `faults` of other
    /// fields.
    async fn refuse(
        &self,
        person: &Person,
        reason: Reason,
        fault: FieldError,
        mut faults: Vec<FieldError>,
    ) -> Error {
        let Self { app, signed_in, address, started_at } = *self;
        let account = signed_in.email.as_str();
        app.brute_force.record_person_failure(account);
        let recorded = record_refusal(app, signed_in, person, reason, address).await;
        app.brute_force.refuse(address, Some(account), started_at).await;
        if let Err(error) = recorded {
            return error;
        }
        faults.insert(0, fault);
        ValidationError { errors: faults, omitted: 0 }.into()
    }
}

async fn find(app: &App, signed_in: &SignedIn) -> Result<Person, Error> {
    let mut conn = app.pool.get().await?;
    check_session(&mut conn, signed_in).await?;
    stored_people::find(&mut conn, &signed_in.email).await?.ok_or(Error::SessionEnded)
}

/// Rejects the token of a session that has ended. All services reject it within seconds.
async fn check_session(conn: &mut AsyncPgConnection, signed_in: &SignedIn) -> Result<(), Error> {
    sessions::find(conn, signed_in.session).await?.map(drop).ok_or(Error::SessionEnded)
}

/// Checks the code. If other fields have faults, a right code is not used up.
async fn check_code(
    app: &App,
    verified: &Person,
    code: Option<&SecretString>,
    faults: &[FieldError],
) -> Result<Result<Person, Reason>, Error> {
    let faults = ValidationError::from_errors(faults.iter().cloned());
    if let (None, Some(error)) = (code, &faults) {
        return Err(error.clone().into());
    }
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        match (codes::lock_person(app, conn, verified, code).await?, &faults) {
            (Ok(_), Some(error)) => Err(error.clone().into()),
            (checked, _) => Ok(checked),
        }
    })
    .await
}

/// Records a refusal. The session ends with the last one that it may have.
async fn record_refusal(
    app: &App,
    signed_in: &SignedIn,
    person: &Person,
    reason: Reason,
    address: IpAddr,
) -> Result<(), Error> {
    let mut conn = app.pool.get().await?;
    let is_ended = conn
        .transaction(async |conn| {
            let actor = person.email.as_str();
            let detail = json!({ "reason": reason, "address": address });
            let record = people::record(actor, "password.refused", person, detail);
            audit::insert(conn, record, app.clock.now()).await?;
            let refusals = sessions::count_refusal(conn, signed_in.session).await?;
            if refusals.is_some_and(|refusals| refusals < MAX_REFUSALS) {
                return Ok(false);
            }
            let ended = sessions::find(conn, signed_in.session).await?;
            ended_sessions::end(app, conn, actor, person, ended.as_slice()).await?;
            Ok::<_, Error>(true)
        })
        .await?;
    if is_ended { Err(Error::SessionEnded) } else { Ok(()) }
}

/// Locks the person whom [`Proof::verify`] verified. Another request may have changed the credentials or
/// ended the session meanwhile.
pub(super) async fn lock(
    conn: &mut AsyncPgConnection,
    signed_in: &SignedIn,
    verified: &Person,
) -> Result<Person, Error> {
    let person = stored_people::lock(conn, &verified.email).await?;
    check_session(conn, signed_in).await?;
    let is_unchanged = person.password_hash == verified.password_hash
        && person.totp_secret == verified.totp_secret;
    if is_unchanged { Ok(person) } else { Err(Error::SessionEnded) }
}
