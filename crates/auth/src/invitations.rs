//! Invitations: a link with which a person sets a password and TOTP.

mod acceptance;

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use platform::idempotency::{self, IdempotencyKey};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use utoipa::ToSchema;

pub(crate) use self::acceptance::{Acceptance, AcceptedInvitation, accept};
use crate::{
    App,
    audit::NewAuditRecord,
    credentials,
    email::Email,
    error::Error,
    people::{self, Manager, NewPerson, PersonView},
    roles::Role,
    sealed_response,
    store::{
        audit,
        invitations::{self, Invitation},
        people::{self as stored_people, Person, State},
    },
    totp::{self, TotpSetup},
};

/// A new invitation. Only this response contains its token.
#[derive(Serialize, ToSchema)]
pub(crate) struct InvitationView {
    /// The page of the console where the person accepts the invitation.
    url: String,
    token: String,
    expires_at: DateTime<Utc>,
}

/// A person with a new invitation.
#[derive(Serialize, ToSchema)]
pub(crate) struct InvitedPerson {
    person: PersonView,
    invitation: InvitationView,
}

/// An invitation as the invited person sees it.
#[derive(Serialize, ToSchema)]
pub(crate) struct InvitationDetails {
    #[schema(example = "ada@acme.example")]
    email: String,
    name: String,
    role: Role,
    merchant: Option<String>,
    expires_at: DateTime<Utc>,
    totp: TotpSetup,
}

/// Creates a person and an invitation, and returns an [`InvitedPerson`]. A request with a key that was used gets the
/// first invitation.
pub(crate) async fn invite(
    app: &App,
    manager: &Manager<'_>,
    key: Option<&IdempotencyKey<'_>>,
    new: NewPerson,
) -> Result<Value, Error> {
    check_passwords(app, Error::InvitationsDisabled)?;
    manager.check_merchant(new.merchant.as_ref())?;
    let now = app.clock.now();
    let context = response_context(&new.email);
    let mut conn = app.pool.get().await?;
    let invited = conn.transaction(async |conn| {
        idempotency::run(conn, key, now, async |conn| {
            let person = people::create(conn, new, State::Invited, now).await?;
            let invitation = create(app, conn, &person.email).await?;
            let detail = json!({
                "name": person.name, "role": person.role, "expires_at": invitation.expires_at,
            });
            let record = people::record(manager.actor, "person.invited", &person, detail);
            audit::insert(conn, record, now).await?;
            let person = PersonView::from(&person);
            sealed_response::seal(app, &context, &InvitedPerson { person, invitation })
        })
        .await
    });
    match (invited.await, manager.merchant) {
        (Err(Error::PersonExists(email)), Some(own)) => {
            Err(refusal(app, &mut conn, manager.actor, own, email).await?)
        }
        (invited, _) => sealed_response::open(app, &context, &invited?),
    }
}

fn response_context(person: &Email) -> String {
    format!("response with an invitation of {person}")
}

/// The refusal of an address that a person has. The managers of a merchant are not told about people of others.
/// The audit log shows operators who tries addresses.
async fn refusal(
    app: &App,
    conn: &mut AsyncPgConnection,
    actor: &str,
    own: &MerchantId,
    email: Email,
) -> Result<Error, Error> {
    let person = stored_people::find(conn, &email).await?;
    if person.is_some_and(|person| person.merchant.as_ref() == Some(own)) {
        return Ok(Error::PersonExists(email));
    }
    let subject = format!("person/{email}");
    let detail = json!({});
    let action = "person.invitation_refused";
    let record = NewAuditRecord { actor, action, subject, merchant: Some(own), detail };
    audit::insert(conn, record, app.clock.now()).await?;
    Ok(Error::NotInvitable(email))
}

/// Invites a person again, and returns an [`InvitedPerson`]. An earlier invitation is void; the password stays valid
/// until the new invitation is accepted. A request with a key that was used gets the first invitation.
pub(crate) async fn renew(
    app: &App,
    manager: &Manager<'_>,
    key: Option<&IdempotencyKey<'_>>,
    email: &Email,
) -> Result<Value, Error> {
    check_passwords(app, Error::InvitationsDisabled)?;
    let context = response_context(email);
    let stored = app
        .pool
        .transaction_of(email.as_str(), async |conn| {
            idempotency::run(conn, key, app.clock.now(), async |conn| {
                let person = stored_people::lock(conn, email).await?;
                manager.check(&person)?;
                if person.state == State::Disabled {
                    return Err(Error::PersonDisabled(person.email));
                }
                let invitation = renew_locked(app, conn, manager.actor, &person).await?;
                let person = PersonView::from(&person);
                sealed_response::seal(app, &context, &InvitedPerson { person, invitation })
            })
            .await
        })
        .await?;
    sealed_response::open(app, &context, &stored)
}

/// Invites a person again whom the caller locked.
pub(crate) async fn renew_locked(
    app: &App,
    conn: &mut AsyncPgConnection,
    actor: &str,
    person: &Person,
) -> Result<InvitationView, Error> {
    let invitation = create(app, conn, &person.email).await?;
    let detail = json!({ "expires_at": invitation.expires_at });
    let record = people::record(actor, "person.invitation_renewed", person, detail);
    audit::insert(conn, record, app.clock.now()).await?;
    Ok(invitation)
}

/// Rejects a request that makes no sense while people cannot have passwords.
fn check_passwords(app: &App, error: Error) -> Result<(), Error> {
    if app.settings.people.passwords { Ok(()) } else { Err(error) }
}

async fn create(
    app: &App,
    conn: &mut AsyncPgConnection,
    person: &Email,
) -> Result<InvitationView, Error> {
    let settings = &app.settings.people;
    let token = credentials::generate_token()?;
    let expires_at = app.clock.now() + settings.invitation_lifetime;
    let invitation = Invitation { person: person.clone(), expires_at };
    invitations::replace(conn, &invitation, credentials::hash(&token)).await?;
    let url = settings.console_page(&format!("/invitation?token={token}"));
    Ok(InvitationView { url, token, expires_at })
}

/// Shows an invitation to the person who has its token, with a new TOTP secret. A form that was rejected
/// gets the secret of its `setup` again, because the person has put it into the app already.
pub(crate) async fn show(
    app: &App,
    token: &str,
    setup: Option<String>,
    address: IpAddr,
) -> Result<InvitationDetails, Error> {
    check_passwords(app, Error::PasswordsDisabled)?;
    let (invitation, person) = find(app, token, address).await?;
    let token = credentials::hash(token);
    let form = totp::Form { sealer: &app.sealer, person: &person.email, owner: &token };
    Ok(InvitationDetails {
        totp: form.show(setup, is_totp_required(&person))?,
        email: person.email.to_string(),
        name: person.name,
        role: person.role,
        merchant: person.merchant.map(String::from),
        expires_at: invitation.expires_at,
    })
}

pub(crate) fn is_totp_required(person: &Person) -> bool {
    person.role == Role::Operator
}

/// The invitation with this token and its person. All failures are alike.
async fn find(app: &App, token: &str, address: IpAddr) -> Result<(Invitation, Person), Error> {
    let started_at = Instant::now();
    let now = app.clock.now();
    let mut conn = app.pool.get().await?;
    let invitation = invitations::find(&mut conn, &credentials::hash(token), now).await?;
    if let Some(invitation) = invitation
        && let Some(person) = people::find(&mut conn, &invitation.person).await?
    {
        return Ok((invitation, person));
    }
    drop(conn);
    app.brute_force.refuse(address, None, started_at).await;
    Err(Error::InvitationNotFound)
}
