//! Sessions of people: start, use, list and end them.
//!
//! A session ends after its lifetime or when it was idle for too long. A person exchanges the session for
//! access tokens that live for a few minutes, so most requests to other services need no session.
//!
//! See docs/decisions/people-and-sessions.md.

use std::{net::IpAddr, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::AsyncPgConnection;
use platform::{
    Process, Timestamp, chain,
    database::{DatabaseError, Pool, delete_older_than},
    limits::network,
};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    App,
    audit::NewAuditRecord,
    browser::Browser,
    credentials,
    email::Email,
    ended_sessions,
    error::Error,
    people::PersonView,
    store::{
        audit,
        people::{self, Person, State},
        sessions::{self, Session},
    },
};

/// The oldest session of a person ends when this number is exceeded.
const MAX_SESSIONS: usize = 50;
/// `last_used_at` is written no more often than this.
const USE_INTERVAL: TimeDelta = TimeDelta::minutes(1);
const CLEAN_UP_INTERVAL: Duration = Duration::from_secs(60);

/// A session that started.
#[derive(Serialize, ToSchema)]
pub(crate) struct StartedSession {
    /// The secret that identifies the session. Only this response contains it.
    session: String,
    expires_at: DateTime<Utc>,
    person: PersonView,
}

/// An access token of a session.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionToken {
    access_token: String,
    /// In seconds.
    #[schema(example = 600)]
    expires_in: i64,
    session_id: Uuid,
    /// End of the session.
    expires_at: DateTime<Utc>,
    person: PersonView,
}

/// A session, without its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionView {
    id: Uuid,
    #[schema(example = "ada@acme.example")]
    person: String,
    created_at: DateTime<Utc>,
    /// Accurate to the minute.
    last_used_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    #[schema(example = "192.0.2.1")]
    address: String,
    user_agent: Option<String>,
    /// Whether the request was sent with a token of this session.
    current: bool,
}

/// The sessions of a person, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionList {
    sessions: Vec<SessionView>,
}

/// Starts a session of an active person, in the caller's transaction. The session that the browser has
/// until now ends.
pub(crate) async fn start(
    app: &App,
    conn: &mut AsyncPgConnection,
    person: &Person,
    browser: Browser,
) -> Result<StartedSession, Error> {
    let now = app.clock.now();
    let token = credentials::generate_token()?;
    // The person may have been disabled since the caller read it.
    let mut person = people::lock(conn, &person.email).await?;
    if person.state != State::Active {
        return Err(Error::SignInFailed(Some(person.email)));
    }
    if let Some(previous) = &browser.previous_session {
        end_previous(app, conn, previous).await?;
    }
    let mut old = sessions::of_person(conn, &person.email).await?;
    let surplus = old.split_off(old.len().min(MAX_SESSIONS - 1));
    ended_sessions::end(app, conn, person.email.as_str(), &person, &surplus).await?;
    let session = Session {
        id: Uuid::now_v7(),
        person: person.email.to_string(),
        created_at: now,
        last_used_at: now,
        expires_at: now + app.settings.people.session_lifetime,
        address: browser.address.to_string(),
        user_agent: browser.user_agent,
    };
    sessions::insert(conn, &session, credentials::hash(&token)).await?;
    person.last_signed_in_at = Some(now);
    person.last_address = Some(network(browser.address).to_string());
    people::save(conn, &person).await?;
    let record = NewAuditRecord {
        actor: person.email.as_str(),
        action: "session.started",
        subject: format!("session/{}", session.id),
        merchant: person.merchant.as_ref(),
        detail: json!({ "address": session.address, "user_agent": session.user_agent }),
    };
    audit::insert(conn, record, now).await?;
    let expires_at = session.expires_at;
    let person = PersonView::from(&person);
    Ok(StartedSession { session: token, expires_at, person })
}

/// The access token of a session. Each page of the console requests it, so that an ended session has an
/// effect at once.
pub(crate) async fn token(app: &App, token: &str, address: IpAddr) -> Result<SessionToken, Error> {
    let now = app.clock.now();
    let mut conn = app.pool.get().await?;
    let found = sessions::find_by_token(&mut conn, &credentials::hash(token)).await?;
    let is_usable = |(session, person): &(Session, Person)| {
        is_valid(app, session, now) && person.state == State::Active
    };
    // An unknown secret is a session that ended. Nobody can guess 256 bits, so it is no failed attempt.
    let (session, person) = found.filter(is_usable).ok_or(Error::SessionEnded)?;
    if now - session.last_used_at >= USE_INTERVAL {
        sessions::set_used(&mut conn, session.id, now).await?;
    }
    drop(conn);
    let issued = app.session_tokens.get_or_issue(app, &person, &session, address)?;
    Ok(SessionToken {
        access_token: issued.token,
        expires_in: issued.expires_at - now.timestamp(),
        session_id: session.id,
        expires_at: session.expires_at,
        person: PersonView::from(&person),
    })
}

fn is_valid(app: &App, session: &Session, now: Timestamp) -> bool {
    session.expires_at > now && session.last_used_at + app.settings.people.session_idle > now
}

/// The sessions of a person. `current` is the session of the request's token.
pub(crate) async fn list(
    app: &App,
    person: &Email,
    current: Option<Uuid>,
) -> Result<SessionList, Error> {
    let now = app.clock.now();
    let mut found = sessions::of_person(&mut *app.pool.get().await?, person).await?;
    found.retain(|session| is_valid(app, session, now));
    let view = |session: Session| SessionView {
        id: session.id,
        person: session.person,
        created_at: session.created_at,
        last_used_at: session.last_used_at,
        expires_at: session.expires_at,
        address: session.address,
        user_agent: session.user_agent,
        current: current == Some(session.id),
    };
    Ok(SessionList { sessions: found.into_iter().map(view).collect() })
}

/// Ends the session with this token. A session that does not exist is not an error.
pub(crate) async fn end_by_token(app: &App, token: &str) -> Result<(), Error> {
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| end_previous(app, conn, token).await).await
}

/// Ends the session with this token in the caller's transaction.
async fn end_previous(app: &App, conn: &mut AsyncPgConnection, token: &str) -> Result<(), Error> {
    let found = sessions::find_by_token(conn, &credentials::hash(token)).await?;
    let Some((session, person)) = found else { return Ok(()) };
    ended_sessions::end(app, conn, person.email.as_str(), &person, &[session]).await
}

/// The session with this id and its person.
pub(crate) async fn find(app: &App, id: Uuid) -> Result<(Session, Person), Error> {
    let missing = || Error::SessionNotFound(id.to_string());
    let mut conn = app.pool.get().await?;
    let session = sessions::find(&mut conn, id).await?.ok_or_else(missing)?;
    let person = people::find(&mut conn, &session.person.parse()?).await?.ok_or_else(missing)?;
    Ok((session, person))
}

/// Ends one session of a person.
pub(crate) async fn end(
    app: &App,
    actor: &str,
    person: &Person,
    session: Session,
) -> Result<(), Error> {
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| ended_sessions::end(app, conn, actor, person, &[session]).await)
        .await
}

pub(crate) async fn end_all(app: &App, actor: &str, person: &Person) -> Result<(), Error> {
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| ended_sessions::end_all(app, conn, actor, person, None).await)
        .await
}

/// Starts the task that deletes expired sessions, invitations and revocations.
pub(crate) fn start_clean_up(process: &Process) {
    let pool = process.pool.clone();
    let clock = process.clock.clone();
    process.tasks.spawn_interval("expired sessions", CLEAN_UP_INTERVAL, move || {
        let pool = pool.clone();
        let now = clock.now();
        async move {
            if let Err(error) = delete_expired(&pool, now).await {
                tracing::warn!(error = chain(&error), "deleting expired sessions failed");
            }
        }
    });
}

async fn delete_expired(pool: &Pool, now: Timestamp) -> Result<(), DatabaseError> {
    delete_older_than(pool, "sessions", "expires_at", now, TimeDelta::zero()).await?;
    delete_older_than(pool, "invitations", "expires_at", now, TimeDelta::zero()).await?;
    delete_older_than(pool, "revocations", "expires_at", now, TimeDelta::zero()).await
}
