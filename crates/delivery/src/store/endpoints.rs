//! Endpoints that a 410 response disabled, and the backlog and health of endpoints.

use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};

use super::endpoint_health::EndpointHealth;
use super::schema::delivery_endpoints;

/// An endpoint that responded 410.
#[derive(Debug, Queryable)]
pub(crate) struct DisabledEndpoint {
    pub(crate) merchant: String,
    pub(crate) kind: String,
    /// Version of the merchant at that time. A newer version enables the endpoint.
    pub(crate) version: i64,
}

pub(crate) async fn disabled_endpoints(
    conn: &mut AsyncPgConnection,
) -> Result<Vec<DisabledEndpoint>, DatabaseError> {
    let disabled = delivery_endpoints::table
        .filter(delivery_endpoints::disabled_at_version.is_not_null())
        .select((
            delivery_endpoints::merchant,
            delivery_endpoints::kind,
            delivery_endpoints::disabled_at_version.assume_not_null(),
        ));
    Ok(disabled.load(conn).await?)
}

/// Enables an endpoint again, unless it responded 410 to a later version of the merchant. It is not
/// failing until it is tried.
pub(crate) async fn enable_endpoint(
    conn: &mut AsyncPgConnection,
    disabled: &DisabledEndpoint,
) -> Result<(), DatabaseError> {
    let endpoint = delivery_endpoints::table.find((&disabled.merchant, &disabled.kind));
    let same_version = delivery_endpoints::disabled_at_version.le(disabled.version);
    diesel::update(endpoint.filter(same_version))
        .set((
            delivery_endpoints::disabled_at_version.eq(None::<i64>),
            delivery_endpoints::disabled_at.eq(None::<Timestamp>),
            delivery_endpoints::failing_since.eq(None::<Timestamp>),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

/// Backlog, window and health of an endpoint.
#[derive(Debug, QueryableByName)]
pub(crate) struct EndpointDetails {
    #[diesel(sql_type = Text)]
    pub(crate) merchant: String,
    #[diesel(sql_type = Text)]
    pub(crate) kind: String,
    #[diesel(sql_type = BigInt)]
    pub(crate) waiting: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) in_flight: i64,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(crate) oldest_due_at: Option<Timestamp>,
    /// None before the first attempt.
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) window_size: Option<i32>,
    #[diesel(embed)]
    pub(crate) health: EndpointHealth,
    /// Time and status of the last sample that the endpoint accepted.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(crate) sample_at: Option<Timestamp>,
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) sample_status: Option<i32>,
}

/// The window bounds the queued deliveries of an endpoint; the others are counted up to the limit.
const DETAILS: &str = "SELECT given.merchant, given.kind, ( \
     SELECT count(*) FROM ( \
         (SELECT 1 FROM deliveries AS row WHERE row.merchant = given.merchant \
         AND row.kind = given.kind AND row.state = 'ready' \
         ORDER BY row.next_attempt_at LIMIT $3) \
         UNION ALL \
         SELECT 1 FROM deliveries AS row WHERE row.merchant = given.merchant \
         AND row.kind = given.kind AND row.state = 'blocked' \
         LIMIT $3 \
     ) AS waiting \
 ) AS waiting, ( \
     SELECT count(*) FROM deliveries AS row \
     WHERE row.merchant = given.merchant AND row.kind = given.kind AND row.state = 'queued' \
 ) AS in_flight, ( \
     SELECT next_attempt_at FROM deliveries AS row \
     WHERE row.merchant = given.merchant AND row.kind = given.kind AND row.state = 'ready' \
     AND row.next_attempt_at <= $4 ORDER BY next_attempt_at LIMIT 1 \
 ) AS oldest_due_at, endpoint.window_size, endpoint.last_success_at, \
 endpoint.last_success_status, endpoint.last_failure_at, endpoint.last_failure_status, \
 endpoint.last_failure_outcome, endpoint.failing_since, \
 sample.accepted_at AS sample_at, sample.status AS sample_status \
 FROM unnest($1, $2) AS given (merchant, kind) \
 LEFT JOIN delivery_endpoints AS endpoint USING (merchant, kind) \
 LEFT JOIN delivery_samples AS sample USING (merchant, kind)";

/// Returns the details of each endpoint, with its waiting deliveries counted up to `limit`.
pub(crate) async fn endpoint_details(
    conn: &mut AsyncPgConnection,
    (merchants, kinds): (&[&str], &[&str]),
    limit: i64,
    now: Timestamp,
) -> Result<Vec<EndpointDetails>, DatabaseError> {
    Ok(sql_query(DETAILS)
        .bind::<Array<Text>, _>(merchants)
        .bind::<Array<Text>, _>(kinds)
        .bind::<BigInt, _>(limit)
        .bind::<Timestamptz, _>(now)
        .load(conn)
        .await?)
}
