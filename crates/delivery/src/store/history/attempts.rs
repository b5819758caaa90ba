//! Logged attempts of deliveries.

use std::collections::HashMap;

use diesel::dsl::min;
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};
use uuid::Uuid;

use crate::store::schema::delivery_attempts;

#[derive(Queryable, Selectable)]
#[diesel(table_name = delivery_attempts)]
pub(crate) struct AttemptRow {
    pub(crate) replay_number: i32,
    pub(crate) number: i32,
    pub(crate) started_at: Timestamp,
    pub(crate) latency_ms: i32,
    pub(crate) outcome: String,
    pub(crate) status: Option<i32>,
    pub(crate) detail: String,
    pub(crate) response_body: String,
    pub(crate) request_headers: String,
    pub(crate) response_headers: String,
}

impl AttemptRow {
    /// Size of the texts that a merchant's server may have written.
    pub(crate) fn bytes(&self) -> usize {
        self.response_body.len() + self.response_headers.len()
    }
}

/// Returns the newest attempts of a delivery, oldest first.
pub(crate) async fn attempts(
    conn: &mut AsyncPgConnection,
    id: Uuid,
    limit: i64,
) -> Result<Vec<AttemptRow>, DatabaseError> {
    let newest = delivery_attempts::table
        .filter(delivery_attempts::delivery.eq(id))
        .order(delivery_attempts::started_at.desc())
        .limit(limit)
        .select(AttemptRow::as_select());
    let mut attempts: Vec<_> = newest.load(conn).await?;
    attempts.reverse();
    Ok(attempts)
}

/// Returns the time of the first attempt of each delivery that has any.
pub(crate) async fn first_attempts(
    conn: &mut AsyncPgConnection,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, Timestamp>, DatabaseError> {
    let first_attempts = delivery_attempts::table
        .filter(delivery_attempts::delivery.eq_any(ids))
        .group_by(delivery_attempts::delivery)
        .select((
            delivery_attempts::delivery,
            min(delivery_attempts::started_at).assume_not_null(),
        ));
    Ok(first_attempts.load(conn).await?.into_iter().collect())
}
