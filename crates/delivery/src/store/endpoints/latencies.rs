//! Durations of attempts per hour.

use diesel::QueryableByName;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, Each, sql},
};

use crate::store::history::report::MAX_READ;

platform::rows! {
    /// Attempts of one hour in one bucket.
    pub(crate) struct HourBucket {
        pub(crate) hour: Timestamp,
        pub(crate) bucket: i16,
        pub(crate) attempts: i64,
        pub(crate) delivered: i64,
    }
}

const HOURLY: &str = "SELECT hour, bucket, sum(attempts)::bigint AS attempts, \
     sum(delivered)::bigint AS delivered FROM delivery_latencies \
     WHERE hour >= $1 AND kind = ANY ($2) AND merchant = $3 GROUP BY hour, bucket";
const HOURLY_OF_ALL: &str = "SELECT hour, bucket, sum(attempts)::bigint AS attempts, \
     sum(delivered)::bigint AS delivered FROM delivery_totals \
     WHERE hour >= $1 AND kind = ANY ($2) GROUP BY hour, bucket";

/// Returns the attempts of each hour since `from`, of these kinds, of one merchant or of all.
pub(crate) async fn hourly_latencies(
    conn: &mut AsyncPgConnection,
    from: Timestamp,
    merchant: Option<&str>,
    kinds: &[&str],
) -> Result<Vec<HourBucket>, DatabaseError> {
    let query = sql(merchant.map_or(HOURLY_OF_ALL, |_| HOURLY), (from, kinds, Each(merchant)));
    Ok(query.load(conn).await?)
}

platform::rows! {
    /// Attempts at one endpoint, of several hours in one bucket.
    pub(crate) struct EndpointCount {
        pub(crate) merchant: String,
        pub(crate) kind: String,
        pub(crate) bucket: i16,
        pub(crate) attempts: i64,
        pub(crate) delivered: i64,
        /// Number of hourly counts that were added up.
        read: i64,
    }
}

/// Returns the attempts at each endpoint from the hour of `from` until `to`, of these kinds, of one merchant
/// or of all. The flag is true if there are more than [`MAX_READ`] hourly counts; the others are left out.
pub(crate) async fn endpoint_latencies(
    conn: &mut AsyncPgConnection,
    (from, to): (Timestamp, Timestamp),
    merchant: Option<&str>,
    kinds: &[&str],
) -> Result<(Vec<EndpointCount>, bool), DatabaseError> {
    let of_merchant = merchant.map_or("", |_| "AND merchant = $4 AND kind = ANY ($3) ");
    let query = sql(
        format!(
            "SELECT merchant, kind, bucket, sum(attempts)::bigint AS attempts, \
         sum(delivered)::bigint AS delivered, count(*) AS read FROM ( \
             SELECT * FROM delivery_latencies WHERE hour >= date_trunc('hour', $1, 'UTC') \
             AND hour < $2 {of_merchant}LIMIT {MAX_READ} \
         ) AS counts WHERE kind = ANY ($3) GROUP BY merchant, kind, bucket"
        ),
        (from, to, kinds, Each(merchant)),
    );
    let counts: Vec<EndpointCount> = query.load(conn).await?;
    let is_truncated = counts.iter().map(|count| count.read).sum::<i64>() >= MAX_READ;
    Ok((counts, is_truncated))
}

platform::rows! {
    /// Attempts at one endpoint, of one hour in one bucket.
    pub(crate) struct EndpointBucket {
        pub(crate) merchant: String,
        pub(crate) kind: String,
        #[diesel(embed)]
        pub(crate) count: HourBucket,
    }
}

const RECENT: &str = include_str!("recent_latencies.sql");

/// Returns the attempts of each endpoint in the newest hour that has any, and in the hour before.
pub(crate) async fn recent_latencies(
    conn: &mut AsyncPgConnection,
    (merchants, kinds): (&[&str], &[&str]),
) -> Result<Vec<EndpointBucket>, DatabaseError> {
    Ok(sql(RECENT, (merchants, kinds)).load(conn).await?)
}
