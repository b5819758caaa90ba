//! Revocations, until they expire.

use diesel::{ExpressionMethods as _, QueryDsl as _};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::{access::Revocation, event::Event as _};
use platform::Timestamp;
use serde_json::Value;

use crate::{error::Error, schema::revocations};

diesel::define_sql_function! {
    /// The current time of the database, even inside a transaction.
    fn clock_timestamp() -> Timestamptz;
}

/// The time by the database's clock.
pub(crate) async fn database_time(conn: &mut AsyncPgConnection) -> Result<Timestamp, Error> {
    Ok(diesel::select(clock_timestamp()).get_result(conn).await?)
}

/// Stores a revocation, unless one that expires at the same time or later is stored already. Returns whether it was
/// stored.
pub(crate) async fn upsert(
    conn: &mut AsyncPgConnection,
    revocation: &Revocation,
) -> Result<bool, Error> {
    use diesel::{query_dsl::methods::FilterDsl as _, upsert::excluded};
    use revocations as table;
    let stored = diesel::insert_into(table::table)
        .values((
            table::subject.eq(revocation.subject()),
            table::revocation.eq(serde_json::to_value(revocation)?),
            table::expires_at.eq(revocation.expires_at),
            table::created_at.eq(clock_timestamp()),
        ))
        .on_conflict(table::subject)
        .do_update()
        .set((
            table::revocation.eq(excluded(table::revocation)),
            table::expires_at.eq(excluded(table::expires_at)),
            table::created_at.eq(excluded(table::created_at)),
        ))
        .filter(table::expires_at.lt(excluded(table::expires_at)))
        .execute(conn)
        .await?;
    Ok(stored > 0)
}

/// Revocations with the times of their creation, which are by the database's clock.
pub(crate) async fn created_since(
    conn: &mut AsyncPgConnection,
    since: Timestamp,
) -> Result<Vec<(Revocation, Timestamp)>, Error> {
    use revocations as table;
    let rows = table::table
        .filter(table::created_at.ge(since))
        .select((table::revocation, table::created_at));
    let rows: Vec<(Value, Timestamp)> = rows.load(conn).await?;
    let read = |(row, created_at)| Ok((serde_json::from_value(row)?, created_at));
    rows.into_iter().map(read).collect()
}

pub(crate) async fn unexpired(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
) -> Result<Vec<Revocation>, Error> {
    let rows =
        revocations::table.filter(revocations::expires_at.gt(now)).select(revocations::revocation);
    let rows: Vec<Value> = rows.load(conn).await?;
    rows.into_iter().map(|row| Ok(serde_json::from_value(row)?)).collect()
}
