//! Merchants, each stored as one JSON document.

use diesel::{
    ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable,
    dsl::sql,
    sql_types::{BigInt, Bool, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::{access::MerchantId, merchant::Merchant};
use platform::{Timestamp, database::DatabaseError};
use serde_json::Value;

use crate::{
    error::Error,
    schema::{host_names, merchants},
};

#[derive(Debug, Clone)]
pub(crate) struct StoredMerchant {
    pub(crate) merchant: Merchant,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

#[derive(Queryable)]
struct Row {
    _identifier: String,
    _version: i64,
    document: Value,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl TryFrom<Row> for StoredMerchant {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let merchant = serde_json::from_value(row.document)?;
        Ok(Self { merchant, created_at: row.created_at, updated_at: row.updated_at })
    }
}

pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    now: Timestamp,
) -> Result<(), Error> {
    let row = (
        merchants::identifier.eq(merchant.identifier.as_str()),
        merchants::version.eq(merchant.version),
        merchants::document.eq(serde_json::to_value(merchant)?),
        merchants::created_at.eq(now),
        merchants::updated_at.eq(now),
    );
    let inserted = diesel::insert_into(merchants::table).values(row).execute(conn).await;
    inserted.map_err(DatabaseError::from).map_err(|error| match error.constraint() {
        Some("merchants_pkey") => Error::MerchantExists(merchant.identifier.clone()),
        _ => error.into(),
    })?;
    insert_host_names(conn, merchant).await
}

pub(crate) async fn find(conn: &mut AsyncPgConnection, id: &str) -> Result<StoredMerchant, Error> {
    let row: Option<Row> = merchants::table.find(id).first(conn).await.optional()?;
    row.ok_or_else(|| Error::MerchantNotFound(id.to_owned()))?.try_into()
}

/// Locks a merchant until the transaction ends.
pub(crate) async fn lock(conn: &mut AsyncPgConnection, id: &str) -> Result<StoredMerchant, Error> {
    let row: Option<Row> = merchants::table.find(id).for_update().first(conn).await.optional()?;
    row.ok_or_else(|| Error::MerchantNotFound(id.to_owned()))?.try_into()
}

pub(crate) async fn update(
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    now: Timestamp,
) -> Result<(), Error> {
    diesel::update(merchants::table.find(merchant.identifier.as_str()))
        .set((
            merchants::version.eq(merchant.version),
            merchants::document.eq(serde_json::to_value(merchant)?),
            merchants::updated_at.eq(now),
        ))
        .execute(conn)
        .await?;
    let own = host_names::table.filter(host_names::merchant.eq(merchant.identifier.as_str()));
    diesel::delete(own).execute(conn).await?;
    insert_host_names(conn, merchant).await
}

/// Inserts the host names of a merchant that has none in the table.
async fn insert_host_names(conn: &mut AsyncPgConnection, merchant: &Merchant) -> Result<(), Error> {
    let mut names: Vec<_> = merchant.settings.appearance.host_names.iter().collect();
    if names.is_empty() {
        return Ok(());
    }
    // Transactions that insert the same names in the same order cannot deadlock.
    names.sort();
    let row = |name: &&String| {
        let merchant = merchant.identifier.to_string();
        (host_names::host_name.eq(name.to_string()), host_names::merchant.eq(merchant))
    };
    let inserted: Vec<String> = diesel::insert_into(host_names::table)
        .values(names.iter().map(row).collect::<Vec<_>>())
        .on_conflict_do_nothing()
        .returning(host_names::host_name)
        .get_results(conn)
        .await?;
    match names.into_iter().find(|name| !inserted.contains(name)) {
        Some(taken) => Err(Error::HostNameTaken(taken.clone())),
        None => Ok(()),
    }
}

const INCREMENT_VERSIONS: &str = "
    UPDATE merchants
    SET version = GREATEST(version + 1, $1),
        document = jsonb_set(document, '{version}', to_jsonb(GREATEST(version + 1, $1)))";

/// Increments the version of every merchant, to at least `min_version`.
pub(crate) async fn increment_versions(
    conn: &mut AsyncPgConnection,
    min_version: i64,
) -> Result<(), Error> {
    diesel::sql_query(INCREMENT_VERSIONS).bind::<BigInt, _>(min_version).execute(conn).await?;
    Ok(())
}

/// Merchants with the searched words that are read and sorted for each page.
const MAX_SORTED: i64 = 10_000;
/// The text search of the index `merchants_words`.
const HAS_WORDS: &str = "to_tsvector('simple', identifier || ' ' || (document #>> '{settings,name}')) \
                         @@ to_tsquery('simple', ";

/// A query of PostgreSQL's text search: each word must begin a word of the text.
fn word_query(text: &str) -> String {
    let word = |word: &str| format!("'{}':*", word.replace('\\', "\\\\").replace('\'', "''"));
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" & ")
}

/// The next merchants after an identifier, or only the merchant `own`. If there are `words`, each must
/// begin a word of the identifier or name.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    own: Option<&MerchantId>,
    words: Option<&str>,
    after: &str,
    limit: i64,
) -> Result<Vec<StoredMerchant>, Error> {
    let mut query = merchants::table
        .filter(merchants::identifier.gt(after))
        .order(merchants::identifier)
        .limit(limit)
        .into_boxed();
    if let Some(own) = own {
        query = query.filter(merchants::identifier.eq(own.as_str()));
    }
    if let Some(words) = words {
        let has_words = || sql::<Bool>(HAS_WORDS).bind::<Text, _>(word_query(words)).sql(")");
        let few = merchants::table.filter(has_words()).select(merchants::identifier);
        let few: Vec<String> = few.limit(MAX_SORTED + 1).load(conn).await?;
        // The index has no order. Words that many merchants have are found soon in the order of the list.
        query = if i64::try_from(few.len()).is_ok_and(|few| few <= MAX_SORTED) {
            query.filter(merchants::identifier.eq_any(few))
        } else {
            query.filter(has_words())
        };
    }
    query.load::<Row>(conn).await?.into_iter().map(StoredMerchant::try_from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_of_the_text_search_are_only_text() {
        assert_eq!(word_query(" Acme  out "), "'Acme':* & 'out':*");
        assert_eq!(word_query(r"o'neil | a\"), r"'o''neil':* & '|':* & 'a\\':*");
    }
}
