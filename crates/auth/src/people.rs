//! People: find, create, change, disable and enable them.
//!
//! Other merchants' people do not exist for the manager of a merchant.
//!
//! See docs/decisions/people-and-sessions.md.

mod request;

use chrono::{DateTime, Utc};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use platform::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

pub(crate) use self::request::{Manager, NewPerson, PersonChange};
pub(crate) use crate::store::people::find;
use crate::{
    App,
    audit::NewAuditRecord,
    email::Email,
    ended_sessions,
    error::Error,
    roles::Role,
    store::{
        audit, invitations,
        people::{self, Person, State},
        recovery_codes,
    },
};

/// A person.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct PersonView {
    #[schema(example = "ada@acme.example")]
    email: String,
    name: String,
    role: Role,
    merchant: Option<String>,
    state: State,
    /// Whether the person can sign in with a password. People of the OpenID provider have none.
    has_password: bool,
    /// Whether the person signs in with a TOTP code.
    totp: bool,
    created_at: DateTime<Utc>,
    last_signed_in_at: Option<DateTime<Utc>>,
}

impl From<&Person> for PersonView {
    fn from(person: &Person) -> Self {
        Self {
            email: person.email.to_string(),
            name: person.name.clone(),
            role: person.role,
            merchant: person.merchant.as_ref().map(MerchantId::to_string),
            state: person.state,
            has_password: person.password_hash.is_some(),
            totp: person.totp_secret.is_some(),
            created_at: person.created_at,
            last_signed_in_at: person.last_signed_in_at,
        }
    }
}

/// A page of people.
#[derive(Serialize, ToSchema)]
pub(crate) struct PersonPage {
    pub(crate) people: Vec<PersonView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Creates a person without a password, in the caller's transaction.
pub(crate) async fn create(
    conn: &mut AsyncPgConnection,
    new: NewPerson,
    state: State,
    now: Timestamp,
) -> Result<Person, Error> {
    let NewPerson { email, name, role, merchant } = new;
    let person = Person {
        email,
        name,
        role,
        merchant,
        state,
        password_hash: None,
        totp_secret: None,
        totp_step: None,
        wrong_codes: 0,
        oidc: None,
        created_at: now,
        last_signed_in_at: None,
        last_address: None,
    };
    people::insert(conn, &person).await?;
    Ok(person)
}

/// Locks a person for a change. The operators are locked first, so that two transactions can neither
/// block each other nor remove the last two operators.
pub(crate) async fn lock(conn: &mut AsyncPgConnection, email: &Email) -> Result<Person, Error> {
    people::lock_active_operators(conn).await?;
    people::lock(conn, email).await
}

pub(crate) async fn show(app: &App, manager: &Manager<'_>, email: &Email) -> Result<Person, Error> {
    let person = find(&mut *app.pool.get().await?, email).await?;
    let person = person.ok_or_else(|| Error::PersonNotFound(email.to_string()))?;
    manager.check(&person)?;
    Ok(person)
}

/// Removes the password, TOTP and the recovery codes of a person that [`lock`] locked; the caller saves the
/// person. A person whom no OpenID provider knows cannot sign in then and is `invited` again.
pub(crate) async fn clear_credentials(
    conn: &mut AsyncPgConnection,
    person: &mut Person,
) -> Result<(), Error> {
    person.password_hash = None;
    (person.totp_secret, person.totp_step) = (None, None);
    person.wrong_codes = 0;
    if person.state == State::Active && person.oidc.is_none() {
        person.state = State::Invited;
    }
    recovery_codes::replace(conn, &person.email, Vec::new()).await
}

/// Disables a person: the person cannot sign in, and all sessions end.
pub(crate) async fn disable(
    app: &App,
    manager: &Manager<'_>,
    email: &Email,
) -> Result<PersonView, Error> {
    app.pool
        .transaction_of(email.as_str(), async |conn| {
            let before = lock(conn, email).await?;
            manager.check(&before)?;
            let person = disable_locked(app, conn, manager.actor, before).await?;
            Ok(PersonView::from(&person))
        })
        .await
}

/// Disables a person that [`lock`] locked, in the caller's transaction.
pub(crate) async fn disable_locked(
    app: &App,
    conn: &mut AsyncPgConnection,
    actor: &str,
    before: Person,
) -> Result<Person, Error> {
    let person = Person { state: State::Disabled, ..before.clone() };
    if before.state != State::Disabled {
        people::save(conn, &person).await?;
        check_operator_remains(conn, &before).await?;
        invitations::delete(conn, &person.email).await?;
        ended_sessions::end_all(app, conn, actor, &person, None).await?;
        let record = record(actor, "person.disabled", &person, json!({}));
        audit::insert(conn, record, app.clock.now()).await?;
    }
    Ok(person)
}

/// Enables a person with the old password. A person without a way to sign in is invited again.
pub(crate) async fn enable(
    app: &App,
    manager: &Manager<'_>,
    email: &Email,
) -> Result<PersonView, Error> {
    let now = app.clock.now();
    app.pool
        .transaction_of(email.as_str(), async |conn| {
            let mut person = lock(conn, email).await?;
            manager.check(&person)?;
            if person.state == State::Disabled {
                let can_sign_in = person.password_hash.is_some() || person.oidc.is_some();
                person.state = if can_sign_in { State::Active } else { State::Invited };
                people::save(conn, &person).await?;
                let record = record(manager.actor, "person.enabled", &person, json!({}));
                audit::insert(conn, record, now).await?;
            }
            Ok(PersonView::from(&person))
        })
        .await
}

/// Rejects a change that removed the last active operator. `before` is the person before the change.
pub(crate) async fn check_operator_remains(
    conn: &mut AsyncPgConnection,
    before: &Person,
) -> Result<(), Error> {
    let was_operator = before.role == Role::Operator && before.state == State::Active;
    if was_operator && people::lock_active_operators(conn).await?.is_empty() {
        return Err(Error::LastOperator(before.email.clone()));
    }
    Ok(())
}

pub(crate) fn record<'a>(
    actor: &'a str,
    action: &'static str,
    person: &'a Person,
    detail: Value,
) -> NewAuditRecord<'a> {
    let subject = format!("person/{}", person.email);
    NewAuditRecord { actor, action, subject, merchant: person.merchant.as_ref(), detail }
}
