//! Rows of `delivery_endpoints`: locked, and saved with their new window and health.

use diesel::QueryableByName;
use diesel::sql_query;
use diesel::sql_types::{Array, Integer, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::message_kind::MessageKind;
use platform::{
    Timestamp,
    database::{DatabaseError, prepared},
};

use super::health::EndpointHealth;
use crate::store::column;

platform::rows! {
    /// Window and health of an endpoint, as stored.
    pub(super) struct EndpointRow {
        pub(super) merchant: String,
        pub(super) kind: String,
        pub(super) window_size: i32,
        pub(super) slow_start_threshold: i32,
        pub(super) window_acks: i32,
        pub(super) failed_probes: i32,
        pub(super) not_before: Timestamp,
        #[diesel(embed)]
        pub(super) health: EndpointHealth,
    }
}

/// New state of an endpoint.
pub(super) struct EndpointUpdate<'a> {
    pub(super) merchant: &'a str,
    pub(super) kind: MessageKind,
    pub(super) window: [i32; 4],
    pub(super) not_before: Timestamp,
    pub(super) health: EndpointHealth,
}

/// The lateral subquery locks rows in the order of the keys, so that two replicas do not deadlock.
const LOCK_ENDPOINTS: &str = include_str!("lock_endpoints.sql");

pub(super) async fn lock_endpoints<'k, 'm: 'k>(
    conn: &mut AsyncPgConnection,
    endpoints: impl Iterator<Item = &'k (&'m str, MessageKind)>,
) -> Result<Vec<EndpointRow>, DatabaseError> {
    let (merchants, kinds): (Vec<_>, Vec<_>) =
        endpoints.map(|(merchant, kind)| (*merchant, kind.name())).unzip();
    let statement =
        sql_query(LOCK_ENDPOINTS).bind::<Array<Text>, _>(merchants).bind::<Array<Text>, _>(kinds);
    Ok(prepared(statement).load(conn).await?)
}

const SAVE: &str = include_str!("save_endpoints.sql");

pub(super) async fn save_endpoints(
    conn: &mut AsyncPgConnection,
    updates: &[EndpointUpdate<'_>],
) -> Result<(), DatabaseError> {
    type Time = Nullable<Timestamptz>;
    let windows = column(updates, |update| update.window);
    let statement = sql_query(SAVE)
        .bind::<Array<Text>, _>(column(updates, |update| update.merchant))
        .bind::<Array<Text>, _>(column(updates, |update| update.kind.name()))
        .bind::<Array<Integer>, _>(column(&windows, |[size, ..]| *size))
        .bind::<Array<Integer>, _>(column(&windows, |[_, threshold, ..]| *threshold))
        .bind::<Array<Integer>, _>(column(&windows, |[_, _, acks, _]| *acks))
        .bind::<Array<Integer>, _>(column(&windows, |[.., failed_probes]| *failed_probes))
        .bind::<Array<Timestamptz>, _>(column(updates, |update| update.not_before))
        .bind::<Array<Time>, _>(column(updates, |it| it.health.last_success_at))
        .bind::<Array<Nullable<Integer>>, _>(column(updates, |it| it.health.last_success_status))
        .bind::<Array<Time>, _>(column(updates, |it| it.health.last_failure_at))
        .bind::<Array<Nullable<Integer>>, _>(column(updates, |it| it.health.last_failure_status))
        .bind::<Array<Nullable<Text>>, _>(column(updates, |it| {
            it.health.last_failure_outcome.as_deref()
        }))
        .bind::<Array<Time>, _>(column(updates, |it| it.health.failing_since));
    prepared(statement).execute(conn).await?;
    Ok(())
}
