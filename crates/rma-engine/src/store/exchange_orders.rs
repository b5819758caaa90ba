//! Exchange orders and their original orders.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::exchange::ExchangePlaced;
use platform::database::{DatabaseError, prepared, sql};

/// Whether the identifier in the merchant's response belongs to another order: to another exchange
/// order, or to an order that was stored before the exchange order was requested.
pub(crate) async fn is_other_order(
    conn: &mut AsyncPgConnection,
    placed: &ExchangePlaced,
) -> Result<bool, DatabaseError> {
    let query = sql(
        "SELECT identifier FROM exchange_orders \
         WHERE merchant = $1 AND identifier = $2 AND rma_identifier <> $3 \
         UNION ALL SELECT identifier FROM orders \
         WHERE merchant = $1 AND identifier = $2 AND stored_at < $4",
        (
            placed.merchant.as_str(),
            &placed.exchange_order_identifier,
            &placed.rma_identifier,
            placed.ordered_at,
        ),
    );
    Ok(prepared(query).execute(conn).await? > 0)
}

/// Records an exchange order and its original order.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    placed: &ExchangePlaced,
    identifier: &str,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "INSERT INTO exchange_orders (merchant, identifier, original_order_identifier, \
             rma_identifier, placed_at) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT ON CONSTRAINT exchange_orders_pkey DO NOTHING",
        (
            placed.merchant.as_str(),
            identifier,
            &placed.original_order_id,
            &placed.rma_identifier,
            placed.placed_at,
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}
