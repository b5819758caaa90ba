//! Results that decide the states of endpoints, pages of failing endpoints, and the worst of all.

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, Each, sql},
};

use crate::store::history::report::MAX_READ;

/// Merchant and kind of an endpoint.
pub(crate) type EndpointKey = (String, String);

platform::rows! {
    /// The results that decide the state of an endpoint.
    #[derive(Debug)]
    pub(crate) struct EndpointResults {
        pub(crate) merchant: String,
        pub(crate) kind: String,
        pub(crate) failing_since: Option<Timestamp>,
        pub(crate) last_success_at: Option<Timestamp>,
    }
}

/// Returns the results of those of the given endpoints that have had an attempt.
pub(crate) async fn endpoint_results(
    conn: &mut AsyncPgConnection,
    (merchants, kinds): (&[&str], &[&str]),
) -> Result<Vec<EndpointResults>, DatabaseError> {
    Ok(sql("SELECT merchant, kind, failing_since, last_success_at \
         FROM unnest($1, $2) AS given (merchant, kind) JOIN delivery_endpoints USING (merchant, kind)", (merchants, kinds))
    .load(conn)
    .await?)
}

platform::rows! {
    pub(super) struct KeyRow {
        merchant: String,
        kind: String,
    }
}

pub(super) fn keys(rows: Vec<KeyRow>) -> Vec<EndpointKey> {
    rows.into_iter().map(|row| (row.merchant, row.kind)).collect()
}

/// Returns the next failing endpoints after `after`, by merchant and kind.
pub(crate) async fn failing_endpoints(
    conn: &mut AsyncPgConnection,
    merchant: Option<&str>,
    after: Option<&EndpointKey>,
    limit: i64,
) -> Result<Vec<EndpointKey>, DatabaseError> {
    let (after_merchant, after_kind) = after.map_or(("", ""), |(merchant, kind)| (merchant, kind));
    let of_merchant = merchant.map_or("", |_| "AND merchant COLLATE \"C\" = $4 ");
    let query = sql(
        format!(
            "SELECT merchant, kind FROM delivery_endpoints WHERE failing_since IS NOT NULL {of_merchant}\
         AND (merchant COLLATE \"C\", kind COLLATE \"C\") > ($1, $2) \
         ORDER BY merchant COLLATE \"C\", kind COLLATE \"C\" LIMIT $3"
        ),
        (after_merchant, after_kind, limit, Each(merchant)),
    );
    Ok(keys(query.load(conn).await?))
}

/// Endpoints that have failed for the longest time come first. Those of whose recent attempts more than 1 %
/// failed come last, because null sorts last. They are found among a limited number of counts.
const WORST: &str = include_str!("worst_endpoints.sql");

/// Returns the endpoints that need attention, of one merchant or of all, the worst first. Attempts since
/// `recent` count.
pub(crate) async fn worst_endpoints(
    conn: &mut AsyncPgConnection,
    merchant: Option<&str>,
    recent: Timestamp,
    limit: i64,
) -> Result<Vec<EndpointKey>, DatabaseError> {
    let rows = sql(WORST, (merchant, recent, limit, MAX_READ)).load(conn).await?;
    Ok(keys(rows))
}
