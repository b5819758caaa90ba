//! The end of sessions: the session is deleted, and its tokens are revoked in all services.

use diesel_async::AsyncPgConnection;
use serde_json::json;
use uuid::Uuid;

use crate::{
    App,
    audit::NewAuditRecord,
    error::Error,
    revocations,
    store::{
        audit,
        people::Person,
        sessions::{self, Session},
    },
};

/// Ends sessions of a person in the caller's transaction.
pub(crate) async fn end(
    app: &App,
    conn: &mut AsyncPgConnection,
    actor: &str,
    person: &Person,
    ended: &[Session],
) -> Result<(), Error> {
    let now = app.clock.now();
    let ids: Vec<Uuid> = ended.iter().map(|session| session.id).collect();
    sessions::delete(conn, &ids).await?;
    for id in ids {
        revocations::revoke_session(app, conn, id, now).await?;
        let record = NewAuditRecord {
            actor,
            action: "session.ended",
            subject: format!("session/{id}"),
            merchant: person.merchant.as_ref(),
            detail: json!({ "person": person.email.as_str() }),
        };
        audit::insert(conn, record, now).await?;
    }
    Ok(())
}

/// Ends all sessions of a person, except one.
pub(crate) async fn end_all(
    app: &App,
    conn: &mut AsyncPgConnection,
    actor: &str,
    person: &Person,
    except: Option<Uuid>,
) -> Result<(), Error> {
    let mut ended = sessions::of_person(conn, &person.email).await?;
    ended.retain(|session| Some(session.id) != except);
    end(app, conn, actor, person, &ended).await
}
