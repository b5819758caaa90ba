//! What was revoked and still matters.

use diesel::{
    ExpressionMethods as _, QueryDsl as _,
    sql_types::{Jsonb, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::{access::Revocation, event::Event as _};
use platform::Timestamp;
use serde_json::Value;

use crate::{error::Error, schema::revocations};

/// Keeps a revocation, stamped with the database's clock; one that lasts longer replaces it.
pub(crate) async fn keep(
    conn: &mut AsyncPgConnection,
    revocation: &Revocation,
) -> Result<(), Error> {
    diesel::sql_query(
        "INSERT INTO revocations AS known (subject, revocation, expires_at, created_at) \
         VALUES ($1, $2, $3, clock_timestamp()) \
         ON CONFLICT (subject) DO UPDATE SET revocation = excluded.revocation, \
             expires_at = excluded.expires_at, created_at = excluded.created_at \
         WHERE known.expires_at < excluded.expires_at",
    )
    .bind::<Text, _>(revocation.subject())
    .bind::<Jsonb, _>(serde_json::to_value(revocation)?)
    .bind::<Timestamptz, _>(revocation.expires_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// What was kept since a time by the database's clock, each with its time.
pub(crate) async fn since(
    conn: &mut AsyncPgConnection,
    since: Timestamp,
) -> Result<Vec<(Revocation, Timestamp)>, Error> {
    use revocations as table;
    let rows = table::table
        .filter(table::created_at.ge(since))
        .select((table::revocation, table::created_at));
    let rows: Vec<(Value, Timestamp)> = rows.load(conn).await?;
    rows.into_iter().map(|(row, at)| Ok((serde_json::from_value(row)?, at))).collect()
}

pub(crate) async fn in_force(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
) -> Result<Vec<Revocation>, Error> {
    let rows =
        revocations::table.filter(revocations::expires_at.gt(now)).select(revocations::revocation);
    let rows: Vec<Value> = rows.load(conn).await?;
    rows.into_iter().map(|row| Ok(serde_json::from_value(row)?)).collect()
}

pub(crate) async fn forget_expired(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
) -> Result<(), Error> {
    diesel::delete(revocations::table.filter(revocations::expires_at.le(now)))
        .execute(conn)
        .await?;
    Ok(())
}
