//! Endpoints that a 410 response disabled, and the backlog of endpoints.

use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};

use super::schema::delivery_endpoints;

/// An endpoint that responded 410.
#[derive(Debug, Queryable)]
pub(crate) struct DisabledEndpoint {
    pub(crate) merchant: String,
    pub(crate) kind: String,
    /// Version of the merchant at that time. A newer version enables the endpoint.
    pub(crate) version: i64,
    pub(crate) disabled_at: Timestamp,
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
            delivery_endpoints::disabled_at.assume_not_null(),
        ));
    Ok(disabled.load(conn).await?)
}

/// Enables an endpoint again, unless it responded 410 to a later version of the merchant.
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
        ))
        .execute(conn)
        .await?;
    Ok(())
}

/// Deliveries of an endpoint that are not settled.
#[derive(Debug, QueryableByName)]
pub(crate) struct EndpointBacklog {
    #[diesel(sql_type = Text)]
    pub(crate) merchant: String,
    #[diesel(sql_type = Text)]
    pub(crate) kind: String,
    #[diesel(sql_type = BigInt)]
    pub(crate) waiting: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) in_flight: i64,
}

/// The window bounds the queued deliveries of an endpoint; the others are counted up to the limit.
const BACKLOGS: &str = "SELECT given.merchant, given.kind, ( \
     SELECT count(*) FROM ( \
         SELECT FROM deliveries AS row \
         WHERE row.merchant = given.merchant AND row.kind = given.kind \
         AND row.state <> 'queued' LIMIT $3 \
     ) AS waiting \
 ) AS waiting, ( \
     SELECT count(*) FROM deliveries AS row \
     WHERE row.merchant = given.merchant AND row.kind = given.kind AND row.state = 'queued' \
 ) AS in_flight \
 FROM unnest($1, $2) AS given (merchant, kind)";

/// Returns the backlog of each endpoint, counted up to `limit`.
pub(crate) async fn endpoint_backlogs(
    conn: &mut AsyncPgConnection,
    (merchants, kinds): (Vec<&str>, Vec<&str>),
    limit: i64,
) -> Result<Vec<EndpointBacklog>, DatabaseError> {
    Ok(sql_query(BACKLOGS)
        .bind::<Array<Text>, _>(merchants)
        .bind::<Array<Text>, _>(kinds)
        .bind::<BigInt, _>(limit)
        .load(conn)
        .await?)
}
