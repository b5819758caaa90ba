//! Exchange orders: added once for each original order, then settled by the merchant's response or
//! abandoned by an operator.

use diesel::sql_types::{BigInt, Nullable, Text, Timestamptz};
use diesel::{OptionalExtension as _, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::MerchantId;
use domain::exchange::ExchangeOrderResponse;
use domain::returns::UnitId;
use platform::Timestamp;
use platform::database::{DatabaseError, prepared};
use uuid::Uuid;

use super::{from_json, merchant_id, to_json};
use crate::exchange_orders::{State, Stock};

/// An exchange order to send to the merchant.
pub(crate) struct NewOrder<'a> {
    pub(crate) merchant: &'a MerchantId,
    pub(crate) original_order_id: &'a str,
    pub(crate) confirmation: i64,
    pub(crate) transaction_id: Uuid,
    pub(crate) delivery: Uuid,
    pub(crate) units: &'a [UnitId],
    pub(crate) message: &'a str,
    pub(crate) stock: Stock,
    pub(crate) stock_detail: Option<&'a str>,
}

/// An exchange order that was just settled.
pub(crate) struct Settled {
    pub(crate) merchant: MerchantId,
    pub(crate) original_order_id: String,
    pub(crate) rma_identifier: String,
    pub(crate) units: Vec<UnitId>,
}

/// Fails with a constraint violation if the original order already has an exchange order.
pub(crate) async fn add(
    conn: &mut AsyncPgConnection,
    order: &NewOrder<'_>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let insert = diesel::sql_query(
        "INSERT INTO exchange_orders (merchant, original_order_id, confirmation, id, \
         transaction_id, delivery, state, units, message, stock, stock_detail, ordered_at) \
         VALUES ($1, $2, $3, $4, $5, $6, 'sending', $7, $8, $9, $10, $11)",
    )
    .bind::<Text, _>(order.merchant.as_str())
    .bind::<Text, _>(order.original_order_id)
    .bind::<BigInt, _>(order.confirmation)
    .bind::<diesel::sql_types::Uuid, _>(Uuid::new_v4())
    .bind::<diesel::sql_types::Uuid, _>(order.transaction_id)
    .bind::<diesel::sql_types::Uuid, _>(order.delivery)
    .bind::<Text, _>(to_json(&order.units)?)
    .bind::<Text, _>(order.message)
    .bind::<Text, _>(order.stock.as_str())
    .bind::<Nullable<Text>, _>(order.stock_detail)
    .bind::<Timestamptz, _>(now);
    prepared(insert).execute(conn).await?;
    Ok(())
}

#[derive(QueryableByName)]
struct SettledRow {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    original_order_id: String,
    #[diesel(sql_type = Text)]
    rma_identifier: String,
    #[diesel(sql_type = Text)]
    units: String,
    #[diesel(sql_type = Nullable<Text>)]
    exchange_order_identifier: Option<String>,
}

impl SettledRow {
    fn read(self) -> Result<(Settled, Option<String>), DatabaseError> {
        let settled = Settled {
            merchant: merchant_id(&self.merchant)?,
            original_order_id: self.original_order_id,
            rma_identifier: self.rma_identifier,
            units: from_json(&self.units)?,
        };
        Ok((settled, self.exchange_order_identifier))
    }
}

#[derive(QueryableByName)]
struct LockedRow {
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    delivery: Uuid,
}

/// Locks an exchange order until the transaction ends, and returns its state and delivery.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    original_order_id: &str,
) -> Result<Option<(State, Uuid)>, DatabaseError> {
    let lock = diesel::sql_query(
        "SELECT state, delivery FROM exchange_orders \
         WHERE merchant = $1 AND original_order_id = $2 FOR NO KEY UPDATE",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(original_order_id);
    let row: Option<LockedRow> = prepared(lock).get_result(conn).await.optional()?;
    row.map(|row| Ok((State::read(&row.state)?, row.delivery))).transpose()
}

/// Marks an exchange order as placed and returns its identifier; `None` if it is settled already. An
/// identifier is generated if the merchant returned none.
pub(crate) async fn place(
    conn: &mut AsyncPgConnection,
    delivery: Uuid,
    reply: &ExchangeOrderResponse,
    now: Timestamp,
) -> Result<Option<(Settled, String)>, DatabaseError> {
    let amounts = &reply.amounts;
    let update = diesel::sql_query(
        "UPDATE exchange_orders AS own SET state = 'placed', settled_at = $2, \
         exchange_order_identifier = COALESCE($3, 'X-' || id), total_amount_cents = $4, \
         tax_amount_cents = $5, shipping_amount_cents = $6 \
         FROM confirmations WHERE position = own.confirmation \
         AND own.delivery = $1 AND own.state IN ('sending', 'undeliverable') \
         RETURNING own.merchant, own.original_order_id, rma_identifier, units, \
         exchange_order_identifier",
    )
    .bind::<diesel::sql_types::Uuid, _>(delivery)
    .bind::<Timestamptz, _>(now)
    .bind::<Nullable<Text>, _>(reply.order_identifier.as_deref())
    .bind::<Nullable<BigInt>, _>(amounts.total_amount_cents)
    .bind::<Nullable<BigInt>, _>(amounts.tax_amount_cents)
    .bind::<Nullable<BigInt>, _>(amounts.shipping_amount_cents);
    let row: Option<SettledRow> = prepared(update).get_result(conn).await.optional()?;
    let Some((settled, name)) = row.map(SettledRow::read).transpose()? else { return Ok(None) };
    Ok(name.map(|name| (settled, name)))
}

/// Marks an exchange order as undeliverable; `None` if it is settled already.
pub(crate) async fn mark_undeliverable(
    conn: &mut AsyncPgConnection,
    delivery: Uuid,
    now: Timestamp,
) -> Result<Option<Settled>, DatabaseError> {
    fail(conn, delivery, (State::Sending, State::Undeliverable), now).await
}

/// Marks an undeliverable exchange order as abandoned; `None` in any other state.
pub(crate) async fn abandon(
    conn: &mut AsyncPgConnection,
    delivery: Uuid,
    now: Timestamp,
) -> Result<Option<Settled>, DatabaseError> {
    fail(conn, delivery, (State::Undeliverable, State::Abandoned), now).await
}

async fn fail(
    conn: &mut AsyncPgConnection,
    delivery: Uuid,
    (before, after): (State, State),
    now: Timestamp,
) -> Result<Option<Settled>, DatabaseError> {
    let update = diesel::sql_query(
        "UPDATE exchange_orders AS own SET state = $4, settled_at = $2 \
         FROM confirmations WHERE position = own.confirmation \
         AND own.delivery = $1 AND own.state = $3 \
         RETURNING own.merchant, own.original_order_id, rma_identifier, units, \
         exchange_order_identifier",
    )
    .bind::<diesel::sql_types::Uuid, _>(delivery)
    .bind::<Timestamptz, _>(now)
    .bind::<Text, _>(before.as_str())
    .bind::<Text, _>(after.as_str());
    let row: Option<SettledRow> = prepared(update).get_result(conn).await.optional()?;
    Ok(row.map(SettledRow::read).transpose()?.map(|(settled, _)| settled))
}
