//! The acceptance of an invitation.

use std::net::IpAddr;

use diesel_async::AsyncPgConnection;
use domain::{
    access::MerchantId,
    json::{Code, Digest, FieldError, Object, ValidationError, text},
    merchant::Sealed,
};
use platform::idempotency::{self, IdempotencyKey, KeyHeader};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::{check_passwords, find, is_totp_required};
use crate::{
    App,
    browser::Browser,
    credentials,
    email::Email,
    ended_sessions,
    error::Error,
    passwords::NewPassword,
    people, recovery_codes, sealed_response,
    sessions::{self, StartedSession},
    sign_in::read_code,
    store::{
        audit, invitations,
        people::{self as stored_people, Person, State},
        recovery_codes as stored_codes,
    },
    totp,
};

const TOTP_CODE: &str = "$.totp_code";
/// The context in which stored responses are encrypted.
const CONTEXT: &str = "response about an accepted invitation";

/// The session of a person who accepted an invitation.
#[derive(Serialize, ToSchema)]
pub(crate) struct AcceptedInvitation {
    #[serde(flatten)]
    started: StartedSession,
    /// Each replaces a TOTP code once. Empty without TOTP. Only this response contains them.
    recovery_codes: Vec<String>,
}

/// An [`AcceptedInvitation`] as it is stored with the key of its request, encrypted.
#[derive(Serialize, Deserialize)]
struct StoredResponse<T> {
    /// The hash of the password that was set.
    password_hash: Option<String>,
    #[serde(flatten)]
    response: T,
}

/// The credentials that a person chose.
pub(crate) struct Acceptance {
    token: String,
    password: NewPassword,
    code: Option<SecretString>,
    /// The encrypted secret of the page that showed the invitation.
    setup: Option<String>,
    browser: Browser,
}

impl Acceptance {
    /// `address` is accepted and ignored: the address of the connection counts.
    pub(crate) fn read(body: &Object<'_>, address: IpAddr) -> Option<Self> {
        let own = ["token", "password", "password_again", "totp_code", "totp_setup", "address"];
        body.reject_unknown(&[&own[..], &Browser::FIELDS].concat());
        let token = body.required("token", text(0..=1000));
        let password = NewPassword::read(body, "password", "password_again");
        let code = read_code(body);
        let setup = body.optional("totp_setup", text(0..=1000));
        let ignored = body.optional("address", text(0..=1000));
        let browser = Browser::read(body, address);
        ignored?;
        let token = token?;
        let password = password?;
        let code = code?;
        Some(Self { token, password, code, setup: setup?, browser: browser? })
    }
}

/// Sets the password and TOTP of the invited person, ends older sessions and starts a new one. Returns an
/// [`AcceptedInvitation`]. A repeated request with the same key, TOTP setup and password gets the first response.
pub(crate) async fn accept(
    app: &App,
    header: &KeyHeader,
    acceptance: Acceptance,
) -> Result<Value, Error> {
    check_passwords(app, Error::PasswordsDisabled)?;
    let Acceptance { token, password, code, setup, browser } = acceptance;
    let address = browser.address;
    // The password and the code are not part of the digest, which is stored and not encrypted.
    let request = Digest::of_value(&json!([token, setup]));
    let key = header.key_for(None::<&MerchantId>, "acceptances", request);
    let given = password.secret();
    if let Some(first) = first_response(app, key.as_ref(), given, address).await? {
        return Ok(first);
    }
    let (_, person) = match find(app, &token, address).await {
        Ok(found) => found,
        // The same request, sent twice at once, has used the invitation.
        Err(error) => {
            return first_response(app, key.as_ref(), given, address).await?.ok_or(error);
        }
    };
    let token = credentials::hash(&token);
    let totp = check_code(app, &person, &token, code.as_ref(), setup)?;
    let faults = password.faults(&person.email).into_iter();
    if let Some(error) = ValidationError::from_errors(faults.chain(totp.as_ref().err().cloned())) {
        return Err(error.into());
    }
    let totp = totp.ok().flatten();
    let password_hash = app.passwords.hash(given.clone(), address).await?;
    let chosen = Chosen { password_hash: password_hash.clone(), totp };
    let stored = store(app, key.as_ref(), &person.email, &token, chosen, browser).await?;
    if stored.password_hash == Some(password_hash) {
        Ok(stored.response)
    } else {
        repeat(app, stored, given, address).await
    }
}

/// Stores the credentials and uses the invitation up. Returns the stored response of the first request with this key.
async fn store(
    app: &App,
    key: Option<&IdempotencyKey<'_>>,
    email: &Email,
    token: &[u8],
    chosen: Chosen,
    browser: Browser,
) -> Result<StoredResponse<Value>, Error> {
    let mut conn = app.pool.get().await?;
    let stored = conn
        .transaction(async |conn| {
            idempotency::run(conn, key, app.clock.now(), async |conn| {
                let person = stored_people::lock(conn, email).await?;
                // Another request may have used or replaced the invitation meanwhile, or changed the rights.
                if !invitations::take(conn, token).await? {
                    return Err(Error::InvitationNotFound);
                }
                if is_totp_required(&person) && chosen.totp.is_none() {
                    return Err(missing(TOTP_CODE).into());
                }
                let password_hash = Some(chosen.password_hash.clone());
                let (person, recovery_codes) = set_credentials(app, conn, person, chosen).await?;
                let started = sessions::start(app, conn, &person, browser).await?;
                let response = AcceptedInvitation { started, recovery_codes };
                sealed_response::seal(app, CONTEXT, &StoredResponse { password_hash, response })
            })
            .await
        })
        .await?;
    sealed_response::open(app, CONTEXT, &stored)
}

/// The response of an earlier request with this key.
async fn first_response(
    app: &App,
    key: Option<&IdempotencyKey<'_>>,
    password: &SecretString,
    address: IpAddr,
) -> Result<Option<Value>, Error> {
    let Some(key) = key else { return Ok(None) };
    let stored = idempotency::find::<Error>(&mut *app.pool.get().await?, key).await?;
    let Some(stored) = stored else { return Ok(None) };
    let stored = sealed_response::open(app, CONTEXT, &stored)?;
    repeat(app, stored, password, address).await.map(Some)
}

/// Repeats a response, unless the request has another password than the one that was set: its sender would believe that
/// this one was set.
async fn repeat(
    app: &App,
    stored: StoredResponse<Value>,
    password: &SecretString,
    address: IpAddr,
) -> Result<Value, Error> {
    let started_at = Instant::now();
    let StoredResponse { password_hash, response } = stored;
    let account = response.pointer("/person/email").and_then(Value::as_str);
    app.brute_force.check(address, account)?;
    if app.passwords.matches(password.clone(), password_hash.as_deref(), address).await? {
        return Ok(response);
    }
    app.brute_force.refuse(address, account, started_at).await;
    Err(Error::InvitationAccepted)
}

fn missing(field: &str) -> FieldError {
    FieldError { field: field.into(), code: Code::MissingField, detail: None }
}

/// The encrypted secret and the time step of the code, if the person wants TOTP. `token` is the hash of
/// the invitation's token.
fn check_code(
    app: &App,
    person: &Person,
    token: &[u8],
    code: Option<&SecretString>,
    setup: Option<String>,
) -> Result<Result<Option<(Sealed, i64)>, FieldError>, Error> {
    let Some(code) = code else {
        return Ok(if is_totp_required(person) { Err(missing(TOTP_CODE)) } else { Ok(None) });
    };
    let Some(setup) = setup else { return Ok(Err(missing(totp::SETUP))) };
    let form = totp::Form { sealer: &app.sealer, person: &person.email, owner: token };
    Ok(form.verify(setup, TOTP_CODE, code, app.clock.now())?.map(Some))
}

/// The credentials that replace those of a person.
struct Chosen {
    password_hash: String,
    /// The encrypted secret, and the time step of the code that was used.
    totp: Option<(Sealed, i64)>,
}

/// Returns the changed person and the new recovery codes.
async fn set_credentials(
    app: &App,
    conn: &mut AsyncPgConnection,
    mut person: Person,
    chosen: Chosen,
) -> Result<(Person, Vec<String>), Error> {
    let codes = if chosen.totp.is_some() { recovery_codes::generate()? } else { Vec::new() };
    let (totp_secret, totp_step) = chosen.totp.unzip();
    person.password_hash = Some(chosen.password_hash);
    (person.totp_secret, person.totp_step) = (totp_secret, totp_step);
    person.wrong_codes = 0;
    person.state = State::Active;
    stored_people::save(conn, &person).await?;
    let hashes = codes.iter().map(|code| recovery_codes::hash(code)).collect();
    stored_codes::replace(conn, &person.email, hashes).await?;
    let actor = person.email.as_str();
    ended_sessions::end_all(app, conn, actor, &person, None).await?;
    let detail = json!({ "totp": person.totp_secret.is_some() });
    let record = people::record(actor, "person.accepted", &person, detail);
    audit::insert(conn, record, app.clock.now()).await?;
    Ok((person, codes))
}
