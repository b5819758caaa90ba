//! Signing keys, with the private keys encrypted.

use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, sql_types::BigInt};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::merchant::Sealed;
use jsonwebtoken::jwk::Jwk;
use platform::Timestamp;
use serde_json::Value;

use crate::{error::Error, schema::signing_keys};

pub(crate) struct StoredKey {
    pub(crate) id: String,
    pub(crate) private_key: Sealed,
    pub(crate) public_key: Jwk,
    pub(crate) created_at: Timestamp,
    pub(crate) activates_at: Timestamp,
}

#[derive(Queryable)]
struct Row {
    id: String,
    private_key: String,
    public_key: Value,
    created_at: Timestamp,
    activates_at: Timestamp,
}

/// Keeps other replicas from creating or deleting keys until the transaction ends.
pub(crate) async fn lock(conn: &mut AsyncPgConnection) -> Result<(), Error> {
    const LOCK_ID: i64 = i64::from_be_bytes(*b"\0\0\0\0keys");
    diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
        .bind::<BigInt, _>(LOCK_ID)
        .execute(conn)
        .await?;
    Ok(())
}

/// All keys, oldest first.
pub(crate) async fn all(conn: &mut AsyncPgConnection) -> Result<Vec<StoredKey>, Error> {
    let rows: Vec<Row> = signing_keys::table.order(signing_keys::activates_at).load(conn).await?;
    let key = |row: Row| {
        Ok(StoredKey {
            id: row.id,
            private_key: Sealed(row.private_key),
            public_key: serde_json::from_value(row.public_key)?,
            created_at: row.created_at,
            activates_at: row.activates_at,
        })
    };
    rows.into_iter().map(key).collect()
}

pub(crate) async fn insert(conn: &mut AsyncPgConnection, key: &StoredKey) -> Result<(), Error> {
    let row = (
        signing_keys::id.eq(&key.id),
        signing_keys::private_key.eq(&key.private_key.0),
        signing_keys::public_key.eq(serde_json::to_value(&key.public_key)?),
        signing_keys::created_at.eq(key.created_at),
        signing_keys::activates_at.eq(key.activates_at),
    );
    diesel::insert_into(signing_keys::table).values(row).execute(conn).await?;
    Ok(())
}

pub(crate) async fn delete(conn: &mut AsyncPgConnection, ids: &[String]) -> Result<(), Error> {
    diesel::delete(signing_keys::table.filter(signing_keys::id.eq_any(ids))).execute(conn).await?;
    Ok(())
}
