//! Endpoints that have due deliveries.

use diesel::sql_query;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, column, prepared, sql},
};

use crate::store::EndpointKey;

platform::rows! {
    /// An endpoint with a due delivery, and the state that decides whether it may be sent to.
    #[derive(Debug)]
    pub(crate) struct DueEndpoint {
        pub(crate) merchant: String,
        pub(crate) kind: String,
        /// Earliest time of the deliveries that were read.
        pub(crate) first_at: Timestamp,
        /// Number of deliveries that were read.
        pub(crate) read: i64,
        /// None before the first attempt, like the following.
        pub(crate) window_size: Option<i32>,
        pub(crate) failed_probes: Option<i32>,
        pub(crate) not_before: Option<Timestamp>,
    }
}

impl DueEndpoint {
    pub(crate) fn key(&self) -> EndpointKey {
        (self.merchant.clone(), self.kind.clone())
    }

    /// Whether probes of the endpoint fail. Only then `not_before` is the time of the next probe. Otherwise
    /// it is the time of the last response, by a clock that may be ahead of this one.
    pub(crate) fn is_failing(&self) -> bool {
        self.failed_probes.is_some_and(|failed| failed > 0)
    }
}

/// The conditions are those of the index on times.
const DUE_ENDPOINTS: &str = include_str!("due_endpoints.sql");

/// Returns the endpoints of the deliveries that became due after `from`, and the given endpoints, each
/// with the time before which no delivery of it is due. Reads at most `limit` deliveries.
pub(crate) async fn due_endpoints(
    conn: &mut AsyncPgConnection,
    (from, now): (Timestamp, Timestamp),
    limit: i64,
    given: &[(EndpointKey, Timestamp)],
) -> Result<Vec<DueEndpoint>, DatabaseError> {
    let statement = sql(
        DUE_ENDPOINTS,
        (
            from,
            now,
            limit,
            column(given, |((merchant, _), _)| merchant.as_str()),
            column(given, |((_, kind), _)| kind.as_str()),
            column(given, |(_, from)| *from),
        ),
    );
    Ok(prepared(statement).load(conn).await?)
}

platform::rows! {
    /// An endpoint and the time of its first ready delivery.
    #[derive(Debug)]
    pub(crate) struct FirstReady {
        pub(crate) merchant: String,
        pub(crate) kind: String,
        pub(crate) first_at: Timestamp,
    }
}

/// The index skips from endpoint to endpoint, so a long backlog of one costs nothing.
const ENDPOINTS_AFTER: &str = include_str!("endpoints_after.sql");

/// Returns up to `limit` endpoints after `after` that have ready deliveries, due or not.
pub(crate) async fn endpoints_after(
    conn: &mut AsyncPgConnection,
    after: &EndpointKey,
    limit: i64,
) -> Result<Vec<FirstReady>, DatabaseError> {
    let statement = sql(ENDPOINTS_AFTER, (&after.0, &after.1, limit));
    Ok(prepared(statement).load(conn).await?)
}

platform::rows! {
    struct WokenEndpoint {
        merchant: String,
        kind: String,
    }
}

/// DO UPDATE locks a row that is there already, so that it stays until this transaction is visible.
const WAKE_UP: &str = "INSERT INTO delivery_wake_ups VALUES ($1, $2) \
 ON CONFLICT (merchant, kind) DO UPDATE SET kind = excluded.kind";

/// Makes the dispatcher check an endpoint again, whichever replica runs it.
pub(super) async fn wake_up(
    conn: &mut AsyncPgConnection,
    merchant: &str,
    kind: &str,
) -> Result<(), DatabaseError> {
    sql(WAKE_UP, (merchant, kind)).execute(conn).await?;
    Ok(())
}

const TAKE_WAKE_UPS: &str = "DELETE FROM delivery_wake_ups WHERE (merchant, kind) IN ( \
     SELECT merchant, kind FROM delivery_wake_ups FOR UPDATE SKIP LOCKED \
 ) RETURNING merchant, kind";

/// Returns the endpoints to check again, and deletes them. Those of transactions that are not committed
/// are left for the next call.
pub(crate) async fn take_wake_ups(
    conn: &mut AsyncPgConnection,
) -> Result<Vec<EndpointKey>, DatabaseError> {
    let woken: Vec<WokenEndpoint> = prepared(sql_query(TAKE_WAKE_UPS)).load(conn).await?;
    Ok(woken.into_iter().map(|woken| (woken.merchant, woken.kind)).collect())
}
