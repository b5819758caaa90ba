//! The tables behind the merchants.
//!
//! A row is stamped with the database's clock: replicas look for what was copied since their last
//! look, and their own clocks differ.

use diesel::{
    ExpressionMethods as _, QueryDsl as _, QueryableByName,
    sql_types::{BigInt, Jsonb, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::{access::Revocation, event::Event as _, merchant::Merchant};
use platform::{Timestamp, database::DatabaseError};
use serde_json::Value;

diesel::table! {
    replica_merchants (identifier) {
        identifier -> Text,
        version -> Int8,
        document -> Jsonb,
        replicated_at -> Timestamptz,
    }
}

diesel::table! {
    replica_revocations (subject) {
        subject -> Text,
        revocation -> Jsonb,
        expires_at -> Timestamptz,
        replicated_at -> Timestamptz,
    }
}

/// Keeps a merchant as it was told, unless a newer one is here already.
pub(crate) async fn copy_merchant(
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    document: &Value,
) -> Result<(), DatabaseError> {
    diesel::sql_query(
        "INSERT INTO replica_merchants AS known (identifier, version, document, replicated_at) \
         VALUES ($1, $2, $3, clock_timestamp()) \
         ON CONFLICT (identifier) DO UPDATE \
         SET version = excluded.version, document = excluded.document, replicated_at = excluded.replicated_at \
         WHERE known.version <= excluded.version",
    )
    .bind::<Text, _>(merchant.identifier.as_str())
    .bind::<BigInt, _>(merchant.version)
    .bind::<Jsonb, _>(document)
    .execute(conn)
    .await?;
    Ok(())
}

pub(crate) async fn copy_revocation(
    conn: &mut AsyncPgConnection,
    revocation: &Revocation,
    document: &Value,
) -> Result<(), DatabaseError> {
    diesel::sql_query(
        "INSERT INTO replica_revocations AS known (subject, revocation, expires_at, replicated_at) \
         VALUES ($1, $2, $3, clock_timestamp()) \
         ON CONFLICT (subject) DO UPDATE SET revocation = excluded.revocation, \
             expires_at = excluded.expires_at, replicated_at = excluded.replicated_at \
         WHERE known.expires_at <= excluded.expires_at",
    )
    .bind::<Text, _>(revocation.subject())
    .bind::<Jsonb, _>(document)
    .bind::<Timestamptz, _>(revocation.expires_at)
    .execute(conn)
    .await?;
    Ok(())
}

pub(crate) async fn forget_expired(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    use replica_revocations as table;
    diesel::delete(table::table.filter(table::expires_at.lt(now))).execute(conn).await?;
    Ok(())
}

/// The time by the clock that stamps rows.
pub(crate) async fn now(conn: &mut AsyncPgConnection) -> Result<Timestamp, DatabaseError> {
    #[derive(QueryableByName)]
    struct Now {
        #[diesel(sql_type = Timestamptz)]
        now: Timestamp,
    }
    let Now { now } = diesel::sql_query("SELECT clock_timestamp() AS now").get_result(conn).await?;
    Ok(now)
}

pub(crate) async fn merchants_since(
    conn: &mut AsyncPgConnection,
    since: Timestamp,
) -> Result<Vec<Merchant>, DatabaseError> {
    use replica_merchants as table;
    let rows = table::table
        .filter(table::replicated_at.ge(since))
        .select((table::identifier, table::document));
    Ok(rows.load(conn).await?.into_iter().filter_map(read).collect())
}

pub(crate) async fn revocations_since(
    conn: &mut AsyncPgConnection,
    since: Timestamp,
) -> Result<Vec<Revocation>, DatabaseError> {
    use replica_revocations as table;
    let rows = table::table
        .filter(table::replicated_at.ge(since))
        .select((table::subject, table::revocation));
    Ok(rows.load(conn).await?.into_iter().filter_map(read).collect())
}

/// A row that this version of the program cannot read concerns one merchant, and must not keep the
/// others' news away.
fn read<T: serde::de::DeserializeOwned>((id, document): (String, Value)) -> Option<T> {
    let unreadable = |error| tracing::error!(%error, "the copy of {id} cannot be read");
    serde_json::from_value(document).map_err(unreadable).ok()
}
