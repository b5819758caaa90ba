//! Rows of `delivery_endpoints`: locked, and saved with their new window and health.

use diesel::QueryableByName;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::message_kind::MessageKind;
use platform::{
    Timestamp,
    database::{DatabaseError, column, prepared, sql},
};

use super::health::EndpointHealth;

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
    let statement = sql(LOCK_ENDPOINTS, (merchants, kinds));
    Ok(prepared(statement).load(conn).await?)
}

const SAVE: &str = include_str!("save_endpoints.sql");

pub(super) async fn save_endpoints(
    conn: &mut AsyncPgConnection,
    updates: &[EndpointUpdate<'_>],
) -> Result<(), DatabaseError> {
    let windows = column(updates, |update| update.window);
    let statement = sql(
        SAVE,
        (
            column(updates, |update| update.merchant),
            column(updates, |update| update.kind.name()),
            column(&windows, |[size, ..]| *size),
            column(&windows, |[_, threshold, ..]| *threshold),
            column(&windows, |[_, _, acks, _]| *acks),
            column(&windows, |[.., failed_probes]| *failed_probes),
            column(updates, |update| update.not_before),
            column(updates, |it| it.health.last_success_at),
            column(updates, |it| it.health.last_success_status),
            column(updates, |it| it.health.last_failure_at),
            column(updates, |it| it.health.last_failure_status),
            column(updates, |it| it.health.last_failure_outcome.as_deref()),
            column(updates, |it| it.health.failing_since),
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}
