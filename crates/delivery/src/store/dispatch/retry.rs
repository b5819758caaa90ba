//! Facts about waiting deliveries, and their retry at once.

use chrono::TimeDelta;
use diesel::dsl;
use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, sql},
};
use uuid::Uuid;

use super::due::wake_up;
use crate::store::schema::{deliveries, delivery_endpoints};

platform::rows! {
    /// An unsettled delivery and the state of its endpoint.
    #[derive(Debug)]
    pub(crate) struct UnsettledDelivery {
        pub(crate) id: Uuid,
        pub(crate) state: String,
        pub(crate) next_attempt_at: Timestamp,
        /// Time of the next probe, while probes of the endpoint fail.
        pub(crate) not_before: Option<Timestamp>,
        pub(crate) is_window_full: bool,
    }
}

const UNSETTLED: &str = include_str!("unsettled_delivery.sql");

/// Returns the deliveries among `ids` that are not settled.
pub(crate) async fn unsettled(
    conn: &mut AsyncPgConnection,
    ids: &[Uuid],
    initial_window: i32,
) -> Result<Vec<UnsettledDelivery>, DatabaseError> {
    Ok(sql(UNSETTLED, (ids, initial_window)).load(conn).await?)
}

/// Makes a ready delivery due now, and lets its endpoint be probed now. Returns false if the delivery
/// is not ready. The caller opens the transaction.
///
/// A delivery that left the broker unsettled keeps its time, which is at most a second away: see
/// `RELEASED_CLAIM_DELAY`.
pub(crate) async fn retry_now(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    id: Uuid,
) -> Result<bool, DatabaseError> {
    let ready = deliveries::table.find(id).filter(deliveries::state.eq("ready"));
    let endpoint: Option<(String, String, i32)> = ready
        .select((deliveries::merchant, deliveries::kind, deliveries::releases))
        .for_update()
        .first(conn)
        .await
        .optional()?;
    let Some((merchant, kind, releases)) = endpoint else { return Ok(false) };
    if releases == 0 {
        // Before all others of its endpoint, which may have a backlog and a window of one.
        let first: Option<Timestamp> = deliveries::table
            .filter(deliveries::merchant.eq(&merchant).and(deliveries::kind.eq(&kind)))
            // As a literal: the planner uses the index on ready deliveries.
            .filter(deliveries::state.eq(dsl::sql::<Text>("'ready'")))
            .order(deliveries::next_attempt_at)
            .select(deliveries::next_attempt_at)
            .first(conn)
            .await
            .optional()?;
        let before = first.map_or(now, |first| now.min(first - TimeDelta::microseconds(1)));
        let time = deliveries::next_attempt_at.eq(before);
        diesel::update(deliveries::table.find(id)).set(time).execute(conn).await?;
    }
    // The dispatcher does not look for earlier times again by itself.
    wake_up(conn, &merchant, &kind).await?;
    let endpoint = delivery_endpoints::table.find((merchant, kind));
    diesel::update(endpoint.filter(delivery_endpoints::not_before.gt(now)))
        .set(delivery_endpoints::not_before.eq(now))
        .execute(conn)
        .await?;
    Ok(true)
}
