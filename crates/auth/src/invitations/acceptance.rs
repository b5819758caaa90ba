//! The acceptance of an invitation.

use std::net::IpAddr;

use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::{
    json::{Code, FieldError, Object, ValidationError, text},
    merchant::Sealed,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{find, is_totp_required};
use crate::{
    App, credentials, ended_sessions,
    error::Error,
    passwords, people, recovery_codes,
    sessions::{self, StartedSession},
    sign_in::{read_code, read_user_agent},
    store::{
        audit, invitations,
        people::{self as stored_people, Person, State},
        recovery_codes as stored_codes,
    },
    totp,
};

const PASSWORD: &str = "$.password";
const TOTP_CODE: &str = "$.totp_code";

/// The session of a person who accepted an invitation.
#[derive(Serialize, ToSchema)]
pub(crate) struct AcceptedInvitation {
    #[serde(flatten)]
    started: StartedSession,
    /// Each replaces a TOTP code once. Empty without TOTP. Only this response contains them.
    recovery_codes: Vec<String>,
}

/// The credentials that a person chose.
pub(crate) struct Acceptance {
    token: String,
    password: SecretString,
    code: Option<SecretString>,
    user_agent: Option<String>,
}

impl Acceptance {
    /// `address` is accepted and ignored: the address of the connection counts.
    pub(crate) fn read(body: &Object<'_>) -> Option<Self> {
        body.reject_unknown(&["token", "password", "totp_code", "address", "user_agent"]);
        let token = body.required("token", text(0..=1000));
        let password = body.required("password", passwords::read_new);
        let code = read_code(body);
        let address = body.optional("address", text(0..=1000));
        let user_agent = read_user_agent(body);
        address?;
        Some(Self { token: token?, password: password?, code: code?, user_agent: user_agent? })
    }
}

/// Sets the password and TOTP of the invited person, ends older sessions and starts a new one.
pub(crate) async fn accept(
    app: &App,
    acceptance: Acceptance,
    address: IpAddr,
) -> Result<AcceptedInvitation, Error> {
    if !app.settings.people.passwords {
        return Err(Error::PasswordsDisabled);
    }
    let Acceptance { token, password, code, user_agent } = acceptance;
    let (invitation, person) = find(app, &token, address).await?;
    let step = check_code(app, &person, &invitation.totp_secret, code.as_ref())?;
    let checked = passwords::check(PASSWORD, &password, &person.email);
    let errors = [checked.err(), step.as_ref().err().cloned()].into_iter().flatten();
    if let Some(error) = ValidationError::from_errors(errors) {
        return Err(error.into());
    }
    let totp = step.ok().flatten().map(|step| (invitation.totp_secret, step));
    let chosen = Chosen { password_hash: app.passwords.hash(password).await?, totp };
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let person = stored_people::lock(conn, &person.email).await?;
        // Another request may have used or replaced the invitation meanwhile.
        if !invitations::take(conn, &credentials::hash(&token)).await? {
            return Err(Error::InvitationNotFound);
        }
        let (person, recovery_codes) = set_credentials(app, conn, person, chosen).await?;
        let started = sessions::start(app, conn, &person, address, user_agent).await?;
        Ok(AcceptedInvitation { started, recovery_codes })
    })
    .await
}

/// The time step of the code, if the person wants TOTP.
fn check_code(
    app: &App,
    person: &Person,
    totp_secret: &Sealed,
    code: Option<&SecretString>,
) -> Result<Result<Option<i64>, FieldError>, Error> {
    let Some(code) = code else {
        let missing =
            FieldError { field: TOTP_CODE.into(), code: Code::MissingField, detail: None };
        return Ok(if is_totp_required(person) { Err(missing) } else { Ok(None) });
    };
    let secret = totp::open(&app.sealer, &person.email, totp_secret)?;
    let step = totp::step(&person.email, &secret, code.expose_secret(), app.clock.now())?;
    let wrong = || FieldError::invalid(TOTP_CODE, "is not the code that the app shows now");
    Ok(step.map(Some).ok_or_else(wrong))
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
