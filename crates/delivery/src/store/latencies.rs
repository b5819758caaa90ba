//! Durations of attempts per hour.

use diesel::sql_types::{Array, BigInt, Nullable, SmallInt, Text, Timestamptz};
use diesel::{QueryableByName, sql_query};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};

/// Attempts of one hour in one bucket.
#[derive(QueryableByName)]
pub(crate) struct HourBucket {
    #[diesel(sql_type = Timestamptz)]
    pub(crate) hour: Timestamp,
    #[diesel(sql_type = SmallInt)]
    pub(crate) bucket: i16,
    #[diesel(sql_type = BigInt)]
    pub(crate) attempts: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) delivered: i64,
}

const HOURLY: &str = "SELECT hour, bucket, sum(attempts)::bigint AS attempts, \
     sum(delivered)::bigint AS delivered FROM delivery_latencies WHERE hour >= $1 \
     AND ($2::text IS NULL OR merchant = $2) AND ($3::text IS NULL OR kind = $3) \
     GROUP BY hour, bucket";

/// Returns the attempts of each hour since `from`, of one merchant and kind or of all.
pub(crate) async fn hourly_latencies(
    conn: &mut AsyncPgConnection,
    from: Timestamp,
    merchant: Option<&str>,
    kind: Option<&str>,
) -> Result<Vec<HourBucket>, DatabaseError> {
    Ok(sql_query(HOURLY)
        .bind::<Timestamptz, _>(from)
        .bind::<Nullable<Text>, _>(merchant)
        .bind::<Nullable<Text>, _>(kind)
        .load(conn)
        .await?)
}

/// Attempts at one endpoint, of several hours in one bucket.
#[derive(QueryableByName)]
pub(crate) struct EndpointCount {
    #[diesel(sql_type = Text)]
    pub(crate) merchant: String,
    #[diesel(sql_type = Text)]
    pub(crate) kind: String,
    #[diesel(sql_type = SmallInt)]
    pub(crate) bucket: i16,
    #[diesel(sql_type = BigInt)]
    pub(crate) attempts: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) delivered: i64,
}

const BY_ENDPOINT: &str = "SELECT merchant, kind, bucket, sum(attempts)::bigint AS attempts, \
     sum(delivered)::bigint AS delivered FROM delivery_latencies \
     WHERE hour >= date_trunc('hour', $1, 'UTC') AND hour < $2 \
     AND ($3::text IS NULL OR merchant = $3) GROUP BY merchant, kind, bucket";

/// Returns the attempts at each endpoint from the hour of `from` until `to`, of one merchant or of all.
pub(crate) async fn endpoint_latencies(
    conn: &mut AsyncPgConnection,
    from: Timestamp,
    to: Timestamp,
    merchant: Option<&str>,
) -> Result<Vec<EndpointCount>, DatabaseError> {
    Ok(sql_query(BY_ENDPOINT)
        .bind::<Timestamptz, _>(from)
        .bind::<Timestamptz, _>(to)
        .bind::<Nullable<Text>, _>(merchant)
        .load(conn)
        .await?)
}

/// Attempts at one endpoint, of one hour in one bucket.
#[derive(QueryableByName)]
pub(crate) struct EndpointBucket {
    #[diesel(sql_type = Text)]
    pub(crate) merchant: String,
    #[diesel(sql_type = Text)]
    pub(crate) kind: String,
    #[diesel(embed)]
    pub(crate) count: HourBucket,
}

const RECENT: &str = "SELECT given.merchant, given.kind, \
     recent.hour, recent.bucket, recent.attempts, recent.delivered \
     FROM unnest($1, $2) AS given (merchant, kind), LATERAL ( \
         SELECT hour FROM delivery_latencies AS newest \
         WHERE newest.merchant = given.merchant AND newest.kind = given.kind \
         ORDER BY hour DESC LIMIT 1 \
     ) AS newest, LATERAL ( \
         SELECT * FROM delivery_latencies AS row \
         WHERE row.merchant = given.merchant AND row.kind = given.kind \
         AND row.hour >= newest.hour - INTERVAL '1 hour' \
     ) AS recent";

/// Returns the attempts of each endpoint in the newest hour that has any, and in the hour before.
pub(crate) async fn recent_latencies(
    conn: &mut AsyncPgConnection,
    (merchants, kinds): (&[&str], &[&str]),
) -> Result<Vec<EndpointBucket>, DatabaseError> {
    Ok(sql_query(RECENT)
        .bind::<Array<Text>, _>(merchants)
        .bind::<Array<Text>, _>(kinds)
        .load(conn)
        .await?)
}
