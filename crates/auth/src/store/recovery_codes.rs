//! The hashes of recovery codes.

use diesel::{ExpressionMethods as _, QueryDsl as _};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};

use crate::{email::Email, error::Error, schema::recovery_codes};

/// Replaces the recovery codes of a person.
pub(crate) async fn replace(
    conn: &mut AsyncPgConnection,
    person: &Email,
    hashes: Vec<Vec<u8>>,
) -> Result<(), Error> {
    let old = recovery_codes::table.filter(recovery_codes::person.eq(person.as_str()));
    diesel::delete(old).execute(conn).await?;
    let row = |hash| (recovery_codes::person.eq(person.as_str()), recovery_codes::hash.eq(hash));
    let rows: Vec<_> = hashes.into_iter().map(row).collect();
    if !rows.is_empty() {
        diesel::insert_into(recovery_codes::table).values(rows).execute(conn).await?;
    }
    Ok(())
}

/// Deletes a recovery code so that it is used once. Returns whether it existed.
pub(crate) async fn take(
    conn: &mut AsyncPgConnection,
    person: &Email,
    hash: Vec<u8>,
) -> Result<bool, Error> {
    let used = diesel::delete(recovery_codes::table.find((person.as_str(), hash)));
    Ok(used.execute(conn).await? == 1)
}
