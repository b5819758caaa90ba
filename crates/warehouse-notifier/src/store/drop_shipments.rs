//! Confirmations and cancellations of drop shipments.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::warehouse::DropShipment;
use platform::Timestamp;
use platform::database::{DatabaseError, Each, IndexRange, column, prepared, sql};
use uuid::Uuid;

platform::rows! { struct OrderRow { cancelled_at: Option<Timestamp> } }

/// Locks an order until the end of the transaction, and returns when it was cancelled, if it was.
pub(crate) async fn lock_order(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    order: &str,
) -> Result<Option<Timestamp>, DatabaseError> {
    let statement = sql(
        "INSERT INTO drop_orders AS stored (merchant, identifier) VALUES ($1, $2) \
         ON CONFLICT ON CONSTRAINT drop_orders_pkey DO UPDATE SET cancelled_at = stored.cancelled_at \
         RETURNING cancelled_at",
        (merchant.as_str(), order),
    );
    let OrderRow { cancelled_at } = prepared(statement).get_result(conn).await?;
    Ok(cancelled_at)
}

pub(crate) async fn cancel_order(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    order: &str,
    at: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "UPDATE drop_orders SET cancelled_at = $3 WHERE merchant = $1 AND identifier = $2",
        (merchant.as_str(), order, at),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

platform::rows! {
    /// A stored confirmation or cancellation.
    pub(crate) struct StoredDropShipment {
        pub(crate) id: Uuid,
        pub(crate) digest: Vec<u8>,
        pub(crate) created_at: Timestamp,
    }
}

/// Finds the confirmation or cancellation with the same reference.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    shipment: &DropShipment,
) -> Result<Option<StoredDropShipment>, DatabaseError> {
    let query = sql(
        "SELECT id, digest, created_at FROM drop_shipments \
         WHERE merchant = $1 AND kind = $2 AND reference = $3",
        (merchant.as_str(), shipment.kind.as_str(), &shipment.reference),
    );
    let found: Vec<StoredDropShipment> = prepared(query).load(conn).await?;
    Ok(found.into_iter().next())
}

/// Stores a confirmation or cancellation, unless one with its reference exists.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    shipment: &DropShipment,
    id: Uuid,
    at: Timestamp,
) -> Result<bool, DatabaseError> {
    let statement = sql(
        "INSERT INTO drop_shipments \
             (merchant, kind, reference, id, order_identifier, digest, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) \
         ON CONFLICT ON CONSTRAINT drop_shipments_pkey DO NOTHING",
        (
            merchant.as_str(),
            shipment.kind.as_str(),
            &shipment.reference,
            id,
            &shipment.order,
            shipment.digest.as_bytes().as_slice(),
            at,
        ),
    );
    Ok(prepared(statement).execute(conn).await? == 1)
}

platform::rows! {
    /// A confirmation or cancellation in a list.
    pub(crate) struct ListedDropShipment {
        pub(crate) merchant: String,
        pub(crate) id: Uuid,
        pub(crate) kind: String,
        pub(crate) order_identifier: String,
        pub(crate) created_at: Timestamp,
    }
}

/// Loads a page, newest first: of all merchants, of one merchant, or of one of its orders.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    order: Option<&str>,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<ListedDropShipment>, DatabaseError> {
    let fixed = [(merchant.map(MerchantId::as_str), "merchant"), (order, "order_identifier")];
    let fixed: Vec<_> =
        fixed.into_iter().filter_map(|(value, column)| Some((value?, column))).collect();
    let columns: Vec<_> =
        (3..).zip(&fixed).map(|(place, (_, column))| (*column, format!("${place}"))).collect();
    let range = IndexRange { fixed: &columns, sorted: &["id"] };
    let query = sql(
        format!(
            "SELECT merchant, id, kind, order_identifier, created_at FROM drop_shipments \
         WHERE {} ORDER BY {} LIMIT $2",
            range.condition(None, Some(("<", "$1"))),
            range.order("DESC")
        ),
        (before.unwrap_or(Uuid::max()), limit, Each(column(&fixed, |(value, _)| *value))),
    );
    Ok(prepared(query).load(conn).await?)
}
