//! What was revoked and still matters.

use diesel::{ExpressionMethods as _, QueryDsl as _};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::{access::Revocation, event::Event as _};
use platform::Timestamp;
use serde_json::Value;

use crate::{error::Error, schema::revocations};

/// Keeps a revocation; returns whether it is news.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    revocation: &Revocation,
    now: Timestamp,
) -> Result<bool, Error> {
    let row = (
        revocations::subject.eq(revocation.subject()),
        revocations::revocation.eq(serde_json::to_value(revocation)?),
        revocations::expires_at.eq(revocation.until),
        revocations::created_at.eq(now),
    );
    let inserted = diesel::insert_into(revocations::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(conn)
        .await?;
    Ok(inserted == 1)
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
