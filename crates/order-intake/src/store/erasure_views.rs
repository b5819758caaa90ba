//! Reads erasures for people.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::erasure::KeptReturn;
use platform::Timestamp;
use platform::database::{DatabaseError, Each, prepared, sql};
use uuid::Uuid;

use super::error::unreadable;

platform::rows! {
    pub(crate) struct ErasureRow {
        pub(crate) id: Uuid,
        pub(crate) merchant: String,
        pub(crate) email_sha256: Option<String>,
        pub(crate) force: bool,
        pub(crate) requested_by: String,
        pub(crate) state: String,
        pub(crate) orders: i64,
        pub(crate) erased_orders: i64,
        pub(crate) erased_events: i64,
        pub(crate) created_at: Timestamp,
        pub(crate) finished_at: Option<Timestamp>,
    }
}

/// Which erasures are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Selected {
    One(Uuid),
    /// Those before an erasure, or all.
    Before(Option<Uuid>),
}

/// Erasures, newest first: of one merchant or of all.
pub(crate) async fn erasures(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    selected: Selected,
    limit: i64,
) -> Result<Vec<ErasureRow>, DatabaseError> {
    let (condition, id) = match selected {
        Selected::One(id) => ("id = $1", id),
        Selected::Before(id) => ("id < $1", id.unwrap_or(Uuid::max())),
    };
    let of_merchant = if merchant.is_some() { " AND merchant = $3" } else { "" };
    let query = sql(
        format!(
            "SELECT id, merchant, email_sha256, force, requested_by, state, orders, erased_orders, \
             erased_events, created_at, finished_at FROM erasures \
         WHERE {condition}{of_merchant} ORDER BY id DESC LIMIT $2"
        ),
        (id, limit, Each(merchant.map(MerchantId::as_str))),
    );
    Ok(prepared(query).load(conn).await?)
}

platform::rows! {
    /// The numbers of one service.
    pub(crate) struct ConfirmationRow {
        pub(crate) service: String,
        pub(crate) records: i64,
        pub(crate) events: i64,
        pub(crate) deliveries: i64,
        pub(crate) confirmed_at: Timestamp,
    }
}

/// The services that confirmed all batches of an erasure.
pub(crate) async fn confirmations(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<Vec<ConfirmationRow>, DatabaseError> {
    let query = sql(include_str!("erasure_confirmations.sql"), id);
    Ok(prepared(query).load(conn).await?)
}

platform::rows! { struct KeptRow { kept_returns: serde_json::Value } }

/// The open returns whose data was kept.
pub(crate) async fn kept_returns(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<Vec<KeptReturn>, DatabaseError> {
    let query = sql(
        "SELECT kept_returns FROM erasure_confirmations \
         WHERE erasure = $1 AND kept_returns <> '[]' ORDER BY batch",
        id,
    );
    let rows: Vec<KeptRow> = prepared(query).load(conn).await?;
    let kept: Result<Vec<Vec<_>>, _> =
        rows.into_iter().map(|row| serde_json::from_value(row.kept_returns)).collect();
    Ok(kept.map_err(unreadable)?.into_iter().flatten().collect())
}
