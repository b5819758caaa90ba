//! The person of a sign-in with an OpenID provider.

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use serde_json::json;

use crate::{
    App,
    email::Email,
    ended_sessions,
    error::Error,
    people::{self, NewPerson, PersonChange},
    rights,
    roles::Role,
    store::{
        self, audit, invitations,
        people::{OidcSubject, Person, State},
    },
};

/// Author of changes of people in the audit log.
const ACTOR: &str = "oidc";

/// A person as the provider describes it.
pub(super) struct Identity {
    pub(super) oidc: OidcSubject,
    pub(super) email: Email,
    pub(super) name: Option<String>,
    pub(super) role: Role,
    pub(super) merchant: Option<MerchantId>,
}

/// Disables the person who signed in as `oidc` before and has no group with a role any more.
pub(super) async fn disable(app: &App, oidc: &OidcSubject) -> Result<(), Error> {
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        if let Some(email) = store::people::find_email_by_subject(conn, oidc).await? {
            let person = people::lock(conn, &email).await?;
            people::disable_locked(app, conn, ACTOR, person).await?;
        }
        Ok(())
    })
    .await
}

/// Creates the person, or gives it the name, role and merchant of the provider. A person who signed in
/// before is found by the subject and keeps the e-mail address, which can change at the provider.
pub(super) async fn save(
    app: &App,
    conn: &mut AsyncPgConnection,
    identity: Identity,
) -> Result<Person, Error> {
    let Identity { oidc, email, name, role, merchant } = identity;
    let email = store::people::find_email_by_subject(conn, &oidc).await?.unwrap_or(email);
    if people::find(conn, &email).await?.is_none() {
        let name = name.unwrap_or_else(|| email.to_string());
        return create_person(app, conn, NewPerson { email, name, role, merchant }, oidc).await;
    }
    let mut person = people::lock(conn, &email).await?;
    // The provider does not undo that a person was disabled.
    if person.state == State::Disabled {
        return Err(Error::SignInFailed(Some(email)));
    }
    // The provider gave the e-mail address of a person to another one.
    let is_other = |known: &OidcSubject| known.issuer == oidc.issuer && *known != oidc;
    if person.oidc.as_ref().is_some_and(is_other) {
        return Err(Error::OidcFailed);
    }
    let is_first = person.oidc.as_ref() != Some(&oidc);
    (person.state, person.oidc) = (State::Active, Some(oidc));
    if is_first {
        link(app, conn, &mut person).await?;
    }
    // A password of an operator needs TOTP, so this person signs in with the provider only.
    if role == Role::Operator && person.totp_secret.is_none() {
        person.password_hash = None;
    }
    store::people::save(conn, &person).await?;
    invitations::delete(conn, &email).await?;
    let change = PersonChange { name, role: Some(role), merchant: Some(merchant) };
    // A person of the provider needs no invitation.
    rights::change(app, conn, ACTOR, &mut person, change).await?;
    Ok(person)
}

/// Ends the sessions and removes the password and TOTP of a person who signs in with the provider for the
/// first time: another person may have accepted an invitation for this e-mail address.
async fn link(app: &App, conn: &mut AsyncPgConnection, person: &mut Person) -> Result<(), Error> {
    let detail = json!({ "credentials_cleared": person.password_hash.is_some() });
    people::clear_credentials(conn, person).await?;
    ended_sessions::end_all(app, conn, ACTOR, person, None).await?;
    let record = people::record(ACTOR, "person.linked", person, detail);
    audit::insert(conn, record, app.clock.now()).await
}

async fn create_person(
    app: &App,
    conn: &mut AsyncPgConnection,
    new: NewPerson,
    oidc: OidcSubject,
) -> Result<Person, Error> {
    let mut person = people::create(conn, new, State::Active, app.clock.now()).await?;
    person.oidc = Some(oidc);
    store::people::save(conn, &person).await?;
    let detail = json!({ "role": person.role, "merchant": person.merchant });
    let record = people::record(ACTOR, "person.created", &person, detail);
    audit::insert(conn, record, app.clock.now()).await?;
    Ok(person)
}
