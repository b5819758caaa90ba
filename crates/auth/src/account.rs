//! The own account of a signed-in person: password, authenticator app and recovery codes.

mod proof;

use std::net::IpAddr;

use diesel_async::AsyncPgConnection;
use domain::json::{Object, text};
use platform::{
    idempotency::{self, IdempotencyKey},
    identity::Caller,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use self::proof::PasswordVerified;
pub(crate) use self::proof::Proof;
use crate::{
    App,
    email::Email,
    ended_sessions,
    error::Error,
    invitations::is_totp_required,
    passwords::NewPassword,
    people, recovery_codes, sealed_response,
    sign_in::secret,
    store::{
        audit,
        people::{self as stored_people, Person},
        recovery_codes as stored_codes,
    },
    totp::{self, TotpSetup},
};

const PASSWORD: &str = "$.password";

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
#[derive(Serialize, Deserialize, ToSchema)]
pub(crate) struct RecoveryCodes {
    /// Each replaces a TOTP code once.
    recovery_codes: Vec<String>,
}

/// New recovery codes as they are stored with the key of their request, encrypted.
#[derive(Serialize, Deserialize)]
struct StoredCodes {
    #[serde(flatten)]
    codes: RecoveryCodes,
    /// The code of the request. The request used it up, so a repeated request cannot prove more than that it has the
    /// same one.
    totp_code: Option<String>,
}

/// A change of the own password.
pub(crate) struct PasswordChange {
    proof: Proof,
    new: NewPassword,
}

impl PasswordChange {
    pub(crate) fn read(body: &Object<'_>) -> Option<Self> {
        let fields = ["current_password", "totp_code", "new_password", "new_password_again"];
        body.reject_unknown(&fields);
        let proof = Proof::read(body, "current_password", "$.current_password");
        let new = NewPassword::read(body, "new_password", "new_password_again");
        Some(Self { proof: proof?, new: new? })
    }
}

/// Reads the proof for new recovery codes.
pub(crate) fn read_proof(body: &Object<'_>) -> Option<Proof> {
    body.reject_unknown(&["password", "totp_code"]);
    Proof::read(body, "password", PASSWORD)
}

/// A change of the own authenticator app.
pub(crate) struct TotpChange {
    proof: Proof,
    setup: String,
    code: SecretString,
}

impl TotpChange {
    pub(crate) fn read(body: &Object<'_>) -> Option<Self> {
        body.reject_unknown(&["password", "totp_code", "totp_setup", "new_totp_code"]);
        let proof = Proof::read(body, "password", PASSWORD);
        let setup = body.required("totp_setup", text(0..=1000));
        let code = body.required("new_totp_code", secret);
        Some(Self { proof: proof?, setup: setup?, code: code? })
    }
}

/// Changes the password and ends all other sessions.
pub(crate) async fn change_password(
    app: &App,
    signed_in: &SignedIn,
    change: PasswordChange,
    address: IpAddr,
) -> Result<(), Error> {
    let PasswordChange { proof, new } = change;
    let faults = new.faults(&signed_in.email);
    let verified = proof.verify(app, signed_in, address, faults).await?;
    let hash = app.passwords.hash(new.into_secret(), address).await?;
    app.pool
        .transaction_of(signed_in.email.as_str(), async |conn| {
            let mut person = proof::lock(conn, signed_in, &verified).await?;
            person.password_hash = Some(hash.clone());
            stored_people::save(conn, &person).await?;
            let actor = person.email.as_str();
            let current = Some(signed_in.session);
            ended_sessions::end_all(app, conn, actor, &person, current).await?;
            let record = people::record(actor, "password.changed", &person, json!({}));
            audit::insert(conn, record, app.clock.now()).await
        })
        .await
}

/// Replaces the recovery codes. A repeated request with the same key, password and code gets the first new codes.
pub(crate) async fn replace_recovery_codes(
    app: &App,
    signed_in: &SignedIn,
    key: Option<&IdempotencyKey<'_>>,
    proof: Proof,
    address: IpAddr,
) -> Result<RecoveryCodes, Error> {
    let password_verified = proof.verify_password(app, signed_in, address, Vec::new()).await?;
    let code = password_verified.code.clone();
    let verified = match verify_code(app, signed_in, key, password_verified).await? {
        Verified::New(person) => person,
        Verified::Repeated(first) => return Ok(first),
    };
    if verified.totp_secret.is_none() {
        return Err(Error::NoTotp(verified.email));
    }
    let stored = app
        .pool
        .transaction_of(signed_in.email.as_str(), async |conn| {
            idempotency::run(conn, key, app.clock.now(), async |conn| {
                let person = proof::lock(conn, signed_in, &verified).await?;
                let recovery_codes = new_recovery_codes(conn, &person).await?;
                let actor = person.email.as_str();
                let record = people::record(actor, "recovery_codes.replaced", &person, json!({}));
                audit::insert(conn, record, app.clock.now()).await?;
                seal_codes(app, signed_in, recovery_codes, code.as_ref())
            })
            .await
        })
        .await?;
    sealed_response::open(app, &codes_context(signed_in), &stored)
}

/// A request for new codes with the right password and code.
enum Verified {
    New(Box<Person>),
    /// The codes of the first request. It used the code up.
    Repeated(RecoveryCodes),
}

/// Verifies the code of a request with the right password.
async fn verify_code(
    app: &App,
    signed_in: &SignedIn,
    key: Option<&IdempotencyKey<'_>>,
    password_verified: PasswordVerified<'_>,
) -> Result<Verified, Error> {
    let code = password_verified.code.clone();
    if let Some(first) = first_codes(app, signed_in, key, code.as_ref()).await? {
        return Ok(Verified::Repeated(first));
    }
    match password_verified.verify_code().await {
        Ok(person) => Ok(Verified::New(Box::new(person))),
        // The same request, sent twice at once, has used the code up.
        Err(error) => {
            let first = first_codes(app, signed_in, key, code.as_ref()).await?;
            first.map(Verified::Repeated).ok_or(error)
        }
    }
}

/// The codes of an earlier request with this key and this code.
async fn first_codes(
    app: &App,
    signed_in: &SignedIn,
    key: Option<&IdempotencyKey<'_>>,
    code: Option<&SecretString>,
) -> Result<Option<RecoveryCodes>, Error> {
    let Some(key) = key else { return Ok(None) };
    let stored = idempotency::find::<Error>(&mut *app.pool.get().await?, key).await?;
    let Some(stored) = stored else { return Ok(None) };
    let first: StoredCodes = sealed_response::open(app, &codes_context(signed_in), &stored)?;
    let is_same = first.totp_code.as_deref() == code.map(|code| code.expose_secret());
    Ok(is_same.then_some(first.codes))
}

/// Encrypts new codes, and the code of their request, to store them with its key.
fn seal_codes(
    app: &App,
    signed_in: &SignedIn,
    recovery_codes: Vec<String>,
    code: Option<&SecretString>,
) -> Result<String, Error> {
    let codes = RecoveryCodes { recovery_codes };
    let totp_code = code.map(|code| code.expose_secret().to_owned());
    let stored = StoredCodes { codes, totp_code };
    sealed_response::seal(app, &codes_context(signed_in), &stored)
}

fn codes_context(signed_in: &SignedIn) -> String {
    format!("response with recovery codes of {}", signed_in.email)
}

async fn new_recovery_codes(
    conn: &mut AsyncPgConnection,
    person: &Person,
) -> Result<Vec<String>, Error> {
    let codes = recovery_codes::generate()?;
    let hashes = codes.iter().map(|code| recovery_codes::hash(code)).collect();
    stored_codes::replace(conn, &person.email, hashes).await?;
    Ok(codes)
}

/// A new secret for the authenticator app of the signed-in person. `setup` is that of a form that was
/// rejected.
pub(crate) async fn show_totp_setup(
    app: &App,
    signed_in: &SignedIn,
    setup: Option<String>,
) -> Result<TotpSetup, Error> {
    let person = people::find(&mut *app.pool.get().await?, &signed_in.email).await?;
    let person = person.ok_or(Error::SessionEnded)?;
    form(app, signed_in).show(setup, is_totp_required(&person))
}

/// Replaces the authenticator app and the recovery codes, and ends all other sessions. A repeated request with the same
/// key, password and code gets the first new codes.
pub(crate) async fn change_totp(
    app: &App,
    signed_in: &SignedIn,
    key: Option<&IdempotencyKey<'_>>,
    change: TotpChange,
    address: IpAddr,
) -> Result<RecoveryCodes, Error> {
    let TotpChange { proof, setup, code: new_code } = change;
    let form = form(app, signed_in);
    let new = form.verify(setup, "$.new_totp_code", &new_code, app.clock.now())?;
    let faults = new.as_ref().err().cloned().into_iter().collect();
    let password_verified = proof.verify_password(app, signed_in, address, faults).await?;
    let code = password_verified.code.clone();
    let verified = match verify_code(app, signed_in, key, password_verified).await? {
        Verified::New(person) => person,
        Verified::Repeated(first) => return Ok(first),
    };
    let (totp_secret, step) = new?;
    let stored = app
        .pool
        .transaction_of(signed_in.email.as_str(), async |conn| {
            idempotency::run(conn, key, app.clock.now(), async |conn| {
                let mut person = proof::lock(conn, signed_in, &verified).await?;
                (person.totp_secret, person.totp_step) = (Some(totp_secret.clone()), Some(step));
                stored_people::save(conn, &person).await?;
                let recovery_codes = new_recovery_codes(conn, &person).await?;
                let actor = person.email.as_str();
                let current = Some(signed_in.session);
                ended_sessions::end_all(app, conn, actor, &person, current).await?;
                let record = people::record(actor, "totp.changed", &person, json!({}));
                audit::insert(conn, record, app.clock.now()).await?;
                seal_codes(app, signed_in, recovery_codes, code.as_ref())
            })
            .await
        })
        .await?;
    sealed_response::open(app, &codes_context(signed_in), &stored)
}

fn form<'a>(app: &'a App, signed_in: &'a SignedIn) -> totp::Form<'a> {
    let person = &signed_in.email;
    let owner = signed_in.session.as_bytes();
    totp::Form { sealer: &app.sealer, person, owner }
}
