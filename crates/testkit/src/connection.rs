//! Connections to a database server, and the queries that every test needs.

use std::time::Duration;

use diesel::QueryableByName;
use diesel::sql_types::BigInt;
use diesel_async::{
    AsyncConnection as _, AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _,
};
use platform::database::Settings;
use secrecy::SecretString;

pub(crate) fn settings(url: String) -> Settings {
    Settings {
        url: Some(SecretString::from(url)),
        max_connections: 8,
        max_readers: 4,
        acquire_timeout: Duration::from_secs(60),
        statement_timeout: Duration::from_secs(20),
    }
}

pub(crate) async fn connect(server: &str) -> anyhow::Result<AsyncPgConnection> {
    Ok(AsyncPgConnection::establish(&format!("{server}/postgres")).await?)
}

pub(crate) async fn execute(server: &str, statement: &str) -> anyhow::Result<()> {
    Ok(connect(server).await?.batch_execute(statement).await?)
}

/// The value of a query that returns one integer, for example a count.
pub async fn count(conn: &mut AsyncPgConnection, query: &str) -> i64 {
    try_count(conn, query).await.unwrap()
}

/// Like [`count`], for databases that may be unavailable.
pub async fn try_count(conn: &mut AsyncPgConnection, query: &str) -> diesel::QueryResult<i64> {
    #[derive(QueryableByName)]
    struct Counted {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let query = diesel::sql_query(format!("SELECT ({query})::bigint AS count"));
    Ok(query.get_result::<Counted>(conn).await?.count)
}
