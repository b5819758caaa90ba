//! Queries of the replica tables.
//!
//! Rows get their timestamp from the database's clock: the clocks of a service's replicas differ.

use std::collections::{BTreeMap, HashMap};
use std::mem::take;

use diesel::{ExpressionMethods as _, QueryDsl as _, query_dsl::methods, upsert::excluded};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::{access::Revocation, event::Event as _, merchant::Merchant};
use platform::{
    Timestamp,
    database::{DatabaseError, agreed_time, prepared, sql},
};
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
        document -> Jsonb,
        expires_at -> Timestamptz,
        replicated_at -> Timestamptz,
    }
}

#[diesel::declare_sql_function]
extern "SQL" {
    fn clock_timestamp() -> Timestamptz;
}

const UPSERT_MERCHANTS: &str = include_str!("upsert_merchants.sql");

platform::rows! {
    struct Written {
        identifier: String,
        replicated_at: Timestamp,
    }
}

/// Stores the merchants that are new, or that differ from the stored ones and are not older. Returns those that were
/// written, with their times.
pub(crate) async fn upsert_merchants<'a>(
    conn: &mut AsyncPgConnection,
    merchants: impl Iterator<Item = (&'a Merchant, &'a Value)>,
) -> Result<HashMap<String, Timestamp>, DatabaseError> {
    // One version of each, and in the same order in all replicas, so that transactions do not deadlock.
    let mut newest = BTreeMap::<_, (i64, &Value)>::new();
    for (merchant, document) in merchants {
        let known =
            newest.entry(merchant.identifier.as_str()).or_insert((merchant.version, document));
        if known.0 <= merchant.version {
            *known = (merchant.version, document);
        }
    }
    let identifiers: Vec<_> = newest.keys().copied().collect();
    let (versions, documents): (Vec<_>, Vec<_>) = newest.into_values().unzip();
    let query = sql(UPSERT_MERCHANTS, (identifiers, versions, documents));
    let written: Vec<Written> = prepared(query).load(conn).await?;
    Ok(written.into_iter().map(|row| (row.identifier, row.replicated_at)).collect())
}

/// Stores a revocation unless one that expires later is stored.
pub(crate) async fn upsert_revocation(
    conn: &mut AsyncPgConnection,
    revocation: &Revocation,
    document: &Value,
) -> Result<(), DatabaseError> {
    use self::replica_revocations as table;
    let upsert = diesel::insert_into(table::table)
        .values((
            table::subject.eq(revocation.subject()),
            table::document.eq(document),
            table::expires_at.eq(revocation.expires_at),
            table::replicated_at.eq(clock_timestamp()),
        ))
        .on_conflict(table::subject)
        .do_update()
        .set((
            table::document.eq(excluded(table::document)),
            table::expires_at.eq(excluded(table::expires_at)),
            table::replicated_at.eq(excluded(table::replicated_at)),
        ));
    let is_not_shorter = table::expires_at.le(excluded(table::expires_at));
    methods::FilterDsl::filter(upsert, is_not_shorter).execute(conn).await?;
    Ok(())
}

/// Deletes expired revocations, by the clock of the database. None expires while the clock of this process, `now`,
/// differs. The deletion must not fail then, because it is part of storing new revocations.
pub(crate) async fn delete_expired(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    use self::replica_revocations as table;
    let Some(now) = agreed_time(conn, now).await? else { return Ok(()) };
    let expired = table::table.filter(table::expires_at.lt(now));
    diesel::delete(expired).execute(conn).await?;
    Ok(())
}

platform::rows! {
    /// The rows that were written since a time.
    pub(crate) struct Changes {
        /// The time of the database's clock.
        pub(crate) now: Timestamp,
        identifiers: Vec<String>,
        times: Vec<Timestamp>,
        subjects: Vec<String>,
        revocations: Vec<Value>,
    }
}

/// One statement, because every service runs it once a second.
const CHANGES_SINCE: &str = include_str!("changes_since.sql");

pub(crate) async fn changes_since(
    conn: &mut AsyncPgConnection,
    since: Timestamp,
) -> Result<Changes, DatabaseError> {
    let query = sql(CHANGES_SINCE, since);
    Ok(prepared(query).get_result(conn).await?)
}

impl Changes {
    /// The merchants, and when they were written.
    pub(crate) fn merchants(&mut self) -> HashMap<String, Timestamp> {
        take(&mut self.identifiers).into_iter().zip(take(&mut self.times)).collect()
    }

    pub(crate) fn revocations(&mut self) -> impl Iterator<Item = Revocation> {
        take(&mut self.subjects).into_iter().zip(take(&mut self.revocations)).filter_map(read)
    }
}

pub(crate) async fn merchants(
    conn: &mut AsyncPgConnection,
    identifiers: &[&String],
) -> Result<Vec<Merchant>, DatabaseError> {
    use self::replica_merchants as table;
    let rows = table::table
        .filter(table::identifier.eq_any(identifiers))
        .select((table::identifier, table::document));
    Ok(rows.load(conn).await?.into_iter().filter_map(read).collect())
}

/// Deserializes a row. An unreadable row is logged and skipped, so that it does not block others.
fn read<T: serde::de::DeserializeOwned>((id, document): (String, Value)) -> Option<T> {
    let unreadable = |error| tracing::error!(%error, "the replica of {id} is unreadable");
    serde_json::from_value(document).map_err(unreadable).ok()
}
