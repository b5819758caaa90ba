//! Invitations, at most one for each person.

use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use platform::Timestamp;

use crate::{email::Email, error::Error, schema::invitations};

/// An invitation, without its token.
pub(crate) struct Invitation {
    pub(crate) person: Email,
    pub(crate) expires_at: Timestamp,
}

#[derive(Queryable)]
struct Row {
    person: String,
    _token_hash: Vec<u8>,
    expires_at: Timestamp,
}

impl TryFrom<Row> for Invitation {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self { person: row.person.parse()?, expires_at: row.expires_at })
    }
}

/// Stores an invitation in place of an earlier one of the same person.
pub(crate) async fn replace(
    conn: &mut AsyncPgConnection,
    invitation: &Invitation,
    token_hash: Vec<u8>,
) -> Result<(), Error> {
    use diesel::upsert::excluded;
    diesel::insert_into(invitations::table)
        .values((
            invitations::person.eq(invitation.person.as_str()),
            invitations::token_hash.eq(token_hash),
            invitations::expires_at.eq(invitation.expires_at),
        ))
        .on_conflict(invitations::person)
        .do_update()
        .set((
            invitations::token_hash.eq(excluded(invitations::token_hash)),
            invitations::expires_at.eq(excluded(invitations::expires_at)),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    token_hash: &[u8],
    now: Timestamp,
) -> Result<Option<Invitation>, Error> {
    let valid = invitations::table
        .filter(invitations::token_hash.eq(token_hash))
        .filter(invitations::expires_at.gt(now));
    valid.first::<Row>(conn).await.optional()?.map(Invitation::try_from).transpose()
}

/// Deletes an invitation so that it is used once. Returns whether it existed.
pub(crate) async fn take(conn: &mut AsyncPgConnection, token_hash: &[u8]) -> Result<bool, Error> {
    let used = invitations::table.filter(invitations::token_hash.eq(token_hash));
    Ok(diesel::delete(used).execute(conn).await? == 1)
}

/// Deletes the invitation of a person. Returns whether it existed.
pub(crate) async fn delete(conn: &mut AsyncPgConnection, person: &Email) -> Result<bool, Error> {
    let deleted = diesel::delete(invitations::table.find(person.as_str())).execute(conn).await?;
    Ok(deleted == 1)
}
