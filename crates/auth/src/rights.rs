//! Changes of a person's name, role and merchant.
//!
//! A manager of a merchant gets the invitation links of its people, and can set their passwords with the
//! links. New rights therefore end an open invitation, and a person who leaves the merchant loses the
//! password and TOTP and sets new ones with a new invitation.

use diesel_async::AsyncPgConnection;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    App,
    email::Email,
    ended_sessions,
    error::Error,
    invitations::{self, InvitationView},
    people::{self, Manager, PersonChange, PersonView},
    store::{
        self, audit,
        people::{Person, State},
    },
};

/// A person after a change.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChangedPerson {
    #[serde(flatten)]
    person: PersonView,
    /// A new invitation, if the change ended an open one or the credentials of the person. Only this
    /// response contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    invitation: Option<InvitationView>,
}

pub(crate) async fn update(
    app: &App,
    manager: &Manager<'_>,
    email: &Email,
    requested: PersonChange,
) -> Result<ChangedPerson, Error> {
    manager.check_merchant(requested.merchant.as_ref().and_then(Option::as_ref))?;
    app.pool
        .transaction_of(email.as_str(), async |conn| {
            let mut person = people::lock(conn, email).await?;
            manager.check(&person)?;
            let needs_invitation =
                change(app, conn, manager.actor, &mut person, requested.clone()).await?;
            let invitation = if needs_invitation && app.settings.people.passwords {
                Some(invitations::renew_locked(app, conn, manager.actor, &person).await?)
            } else {
                None
            };
            Ok(ChangedPerson { person: PersonView::from(&person), invitation })
        })
        .await
}

/// Changes a person that [`people::lock`] locked. A new role or merchant ends the person's sessions and the
/// open invitation. Returns whether the person needs a new invitation.
pub(crate) async fn change(
    app: &App,
    conn: &mut AsyncPgConnection,
    actor: &str,
    person: &mut Person,
    requested: PersonChange,
) -> Result<bool, Error> {
    let now = app.clock.now();
    let before = person.clone();
    requested.apply(person)?;
    let has_new_rights = (before.role, &before.merchant) != (person.role, &person.merchant);
    if !has_new_rights && before.name == person.name {
        return Ok(false);
    }
    // The managers of the former merchant may know the credentials.
    let leaves_merchant = before.merchant.is_some() && before.merchant != person.merchant;
    if leaves_merchant {
        people::clear_credentials(conn, person).await?;
    }
    store::people::save(conn, person).await?;
    let mut had_invitation = false;
    if has_new_rights {
        people::check_operator_remains(conn, &before).await?;
        had_invitation = store::invitations::delete(conn, &person.email).await?;
        ended_sessions::end_all(app, conn, actor, person, None).await?;
    }
    let detail = json!({
        "name": person.name, "role": person.role, "merchant": person.merchant,
        "credentials_cleared": leaves_merchant,
    });
    audit::insert(conn, people::record(actor, "person.updated", person, detail), now).await?;
    Ok(had_invitation || (leaves_merchant && person.state == State::Invited))
}
