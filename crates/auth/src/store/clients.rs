//! Clients and the hashes of their secrets.

use std::collections::HashMap;

use diesel::{
    ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable,
    dsl::sql,
    sql_types::{Bool, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::{MerchantId, Scopes};
use platform::{Timestamp, database::DatabaseError};
use uuid::Uuid;

use crate::{
    error::Error,
    schema::{client_secrets, clients},
};

/// A client, without its secrets.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) merchant: Option<MerchantId>,
    pub(crate) name: String,
    pub(crate) scopes: Scopes,
    pub(crate) created_at: Timestamp,
    pub(crate) revoked_at: Option<Timestamp>,
    pub(crate) last_used_at: Option<Timestamp>,
}

/// The hash of a client secret.
#[derive(Debug, Clone, Queryable)]
pub(crate) struct SecretHash {
    pub(crate) id: Uuid,
    pub(crate) hash: Vec<u8>,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) last_used_at: Option<Timestamp>,
}

#[derive(Queryable)]
struct Row {
    id: String,
    merchant: Option<String>,
    name: String,
    scopes: String,
    created_at: Timestamp,
    revoked_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
}

impl From<Row> for Client {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            merchant: row.merchant.and_then(|id| id.parse().ok()),
            name: row.name,
            // Scopes that only a later version knows are ignored.
            scopes: row.scopes.split(' ').filter_map(|scope| scope.parse().ok()).collect(),
            created_at: row.created_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
        }
    }
}

pub(crate) async fn insert(conn: &mut AsyncPgConnection, client: &Client) -> Result<(), Error> {
    let merchant = client.merchant.as_ref().map(MerchantId::as_str);
    let row = (
        clients::id.eq(&client.id),
        clients::merchant.eq(merchant),
        clients::name.eq(&client.name),
        clients::scopes.eq(client.scopes.to_string()),
        clients::created_at.eq(client.created_at),
    );
    let inserted = diesel::insert_into(clients::table).values(row).execute(conn).await;
    inserted.map_err(DatabaseError::from).map_err(|error| {
        match (error.constraint(), merchant) {
            (Some("clients_merchant_fkey"), Some(merchant)) => {
                Error::MerchantNotFound(merchant.to_owned())
            }
            _ => error.into(),
        }
    })?;
    Ok(())
}

pub(crate) async fn find(conn: &mut AsyncPgConnection, id: &str) -> Result<Option<Client>, Error> {
    let row: Option<Row> = clients::table.find(id).first(conn).await.optional()?;
    Ok(row.map(Client::from))
}

/// Locks a client until the transaction ends.
pub(crate) async fn lock(conn: &mut AsyncPgConnection, id: &str) -> Result<Client, Error> {
    let row: Option<Row> = clients::table.find(id).for_update().first(conn).await.optional()?;
    row.map(Client::from).ok_or_else(|| Error::ClientNotFound(id.to_owned()))
}

pub(crate) async fn set_revoked(
    conn: &mut AsyncPgConnection,
    id: &str,
    now: Timestamp,
) -> Result<(), Error> {
    diesel::update(clients::table.find(id)).set(clients::revoked_at.eq(now)).execute(conn).await?;
    Ok(())
}

/// Sets `last_used_at` of a client and of its secret, unless the stored time of the secret is later than
/// `stored_before`.
pub(crate) async fn set_last_used(
    conn: &mut AsyncPgConnection,
    id: &str,
    secret: Uuid,
    now: Timestamp,
    stored_before: Timestamp,
) -> Result<(), Error> {
    use client_secrets::last_used_at;
    use diesel::BoolExpressionMethods as _;
    let is_due = last_used_at.is_null().or(last_used_at.le(stored_before));
    let updated = diesel::update(client_secrets::table.find(secret).filter(is_due))
        .set(last_used_at.eq(now))
        .execute(conn)
        .await?;
    if updated > 0 {
        let client = diesel::update(clients::table.find(id));
        client.set(clients::last_used_at.eq(now)).execute(conn).await?;
    }
    Ok(())
}

/// The next clients after an id, of one merchant or of all merchants.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: Option<&str>,
    after: &str,
    limit: i64,
) -> Result<Vec<Client>, Error> {
    let mut query = clients::table.limit(limit).into_boxed();
    if let Some(merchant) = merchant {
        // Whole rows are compared, so that the index on them is used.
        let is_after = sql::<Bool>("(merchant, id) > (").bind::<Text, _>(merchant).sql(", ");
        query = query
            .filter(is_after.bind::<Text, _>(after).sql(")"))
            .filter(clients::merchant.le(merchant))
            .order((clients::merchant, clients::id));
    } else {
        query = query.filter(clients::id.gt(after)).order(clients::id);
    }
    Ok(query.load::<Row>(conn).await?.into_iter().map(Client::from).collect())
}

pub(crate) async fn insert_secret(
    conn: &mut AsyncPgConnection,
    client: &str,
    hash: Vec<u8>,
    now: Timestamp,
) -> Result<(), Error> {
    let row = (
        client_secrets::id.eq(Uuid::now_v7()),
        client_secrets::client_id.eq(client),
        client_secrets::hash.eq(hash),
        client_secrets::created_at.eq(now),
    );
    diesel::insert_into(client_secrets::table).values(row).execute(conn).await?;
    Ok(())
}

/// The unexpired secrets of a client, newest first.
pub(crate) async fn valid_secrets(
    conn: &mut AsyncPgConnection,
    client: &str,
    now: Timestamp,
) -> Result<Vec<SecretHash>, Error> {
    use client_secrets as table;
    use diesel::BoolExpressionMethods as _;
    let is_valid = table::expires_at.is_null().or(table::expires_at.gt(now));
    let rows = table::table
        .filter(table::client_id.eq(client))
        .filter(is_valid)
        .order((table::created_at.desc(), table::id.desc()));
    let columns =
        (table::id, table::hash, table::created_at, table::expires_at, table::last_used_at);
    Ok(rows.select(columns).load(conn).await?)
}

pub(crate) async fn expire_secret(
    conn: &mut AsyncPgConnection,
    id: Uuid,
    expires_at: Timestamp,
) -> Result<(), Error> {
    diesel::update(client_secrets::table.find(id))
        .set(client_secrets::expires_at.eq(expires_at))
        .execute(conn)
        .await?;
    Ok(())
}

/// The names of the clients among these ids.
pub(crate) async fn names(
    conn: &mut AsyncPgConnection,
    ids: &[&str],
) -> Result<HashMap<String, String>, Error> {
    let query = clients::table.filter(clients::id.eq_any(ids)).select((clients::id, clients::name));
    Ok(query.load::<(String, String)>(conn).await?.into_iter().collect())
}
