//! Counts of the deliveries that match a filter.

use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::database::DatabaseError;

use super::search::{Filter, SELECT, WHERE};

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// Counts the deliveries that match a filter, up to `limit`.
pub(crate) async fn count(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    limit: i64,
) -> Result<i64, DatabaseError> {
    let statement = format!("SELECT count(*) FROM ({}) AS matches", matches(filter));
    let counted: Count = filter.bind(statement, filter.id_range(), limit).get_result(conn).await?;
    Ok(counted.count)
}

/// Number of matches of one merchant, of one kind, or of both together if neither is set.
#[derive(QueryableByName)]
pub(crate) struct MatchCount {
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) merchant: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) kind: Option<String>,
    #[diesel(sql_type = BigInt)]
    pub(crate) count: i64,
}

/// Counts like [`count`]: in all, by merchant and by kind. The largest counts come first.
pub(crate) async fn match_counts(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    limit: i64,
) -> Result<Vec<MatchCount>, DatabaseError> {
    let statement = format!(
        "SELECT merchant, kind, count(*) FROM ({}) AS matches \
         GROUP BY GROUPING SETS ((), (merchant), (kind)) ORDER BY count DESC, merchant, kind",
        matches(filter)
    );
    Ok(filter.bind(statement, filter.id_range(), limit).load(conn).await?)
}

fn matches(filter: &Filter) -> String {
    format!("{SELECT}{WHERE}{}LIMIT $8", filter.conditions())
}
