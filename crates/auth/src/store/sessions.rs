//! Sessions of people, until they end or expire.

use diesel::{
    ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable, Selectable,
    SelectableHelper as _,
};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use platform::Timestamp;
use uuid::Uuid;

use super::people::{self as people_store, Person};
use crate::{
    email::Email,
    error::Error,
    schema::{people, sessions},
};

/// A session, without its token.
#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = sessions)]
pub(crate) struct Session {
    pub(crate) id: Uuid,
    /// The person's e-mail address.
    pub(crate) person: String,
    pub(crate) created_at: Timestamp,
    pub(crate) last_used_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) address: String,
    pub(crate) user_agent: Option<String>,
}

pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    session: &Session,
    token_hash: Vec<u8>,
) -> Result<(), Error> {
    let row = (
        sessions::id.eq(session.id),
        sessions::person.eq(&session.person),
        sessions::token_hash.eq(token_hash),
        sessions::created_at.eq(session.created_at),
        sessions::last_used_at.eq(session.last_used_at),
        sessions::expires_at.eq(session.expires_at),
        sessions::address.eq(&session.address),
        sessions::user_agent.eq(&session.user_agent),
    );
    diesel::insert_into(sessions::table).values(row).execute(conn).await?;
    Ok(())
}

/// The session with this token, and its person.
pub(crate) async fn find_by_token(
    conn: &mut AsyncPgConnection,
    token_hash: &[u8],
) -> Result<Option<(Session, Person)>, Error> {
    let query = sessions::table
        .inner_join(people::table)
        .filter(sessions::token_hash.eq(token_hash))
        .select((Session::as_select(), people::all_columns));
    let row = query.first::<(Session, people_store::Row)>(conn).await.optional()?;
    row.map(|(session, person)| Ok((session, person.try_into()?))).transpose()
}

pub(crate) async fn find(conn: &mut AsyncPgConnection, id: Uuid) -> Result<Option<Session>, Error> {
    let query = sessions::table.find(id).select(Session::as_select());
    Ok(query.first(conn).await.optional()?)
}

/// All sessions of a person, newest first. Their number is limited when a session starts.
pub(crate) async fn of_person(
    conn: &mut AsyncPgConnection,
    person: &Email,
) -> Result<Vec<Session>, Error> {
    let query = sessions::table
        .filter(sessions::person.eq(person.as_str()))
        .order((sessions::created_at.desc(), sessions::id.desc()))
        .select(Session::as_select());
    Ok(query.load(conn).await?)
}

pub(crate) async fn set_used(
    conn: &mut AsyncPgConnection,
    id: Uuid,
    now: Timestamp,
) -> Result<(), Error> {
    let session = diesel::update(sessions::table.find(id));
    session.set(sessions::last_used_at.eq(now)).execute(conn).await?;
    Ok(())
}

pub(crate) async fn delete(conn: &mut AsyncPgConnection, ids: &[Uuid]) -> Result<(), Error> {
    diesel::delete(sessions::table.filter(sessions::id.eq_any(ids))).execute(conn).await?;
    Ok(())
}

/// Counts a wrong password or code of a session. Returns the number, or nothing if the session has ended.
pub(crate) async fn count_refusal(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<Option<i32>, Error> {
    let counted = diesel::update(sessions::table.find(id))
        .set(sessions::refusals.eq(sessions::refusals + 1))
        .returning(sessions::refusals);
    Ok(counted.get_result(conn).await.optional()?)
}
