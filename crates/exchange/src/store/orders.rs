//! Exchange orders: added once for each original order, then settled by the merchant's response or
//! abandoned by an operator.
//!
//! Statements with conditions are planned each time: a plan that was made while the table was empty would read all
//! orders of the merchant.

use api::exchange::{Abandonment, CheckResult, State};
use diesel::OptionalExtension as _;
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl};
use domain::access::MerchantId;
use domain::exchange::{ExchangeOrderResponse, ExchangeRenamed, PlacedItem};
use platform::Timestamp;
use platform::database::{DatabaseError, prepared, sql};
use uuid::Uuid;

use super::{from_json, merchant_id, parse, to_json};

/// Violated when another exchange order of the merchant has the identifier.
const BY_NAME: &str = "exchange_orders_by_name";

/// An exchange order to send to the merchant.
pub(crate) struct NewOrder<'a> {
    pub(crate) merchant: &'a MerchantId,
    pub(crate) original_order_id: &'a str,
    pub(crate) confirmation: i64,
    pub(crate) transaction_id: Uuid,
    pub(crate) delivery: Uuid,
    pub(crate) items: &'a [PlacedItem],
    pub(crate) message: &'a str,
    pub(crate) stock_check: CheckResult,
    pub(crate) price_check: CheckResult,
    pub(crate) check_detail: Option<&'a str>,
}

/// An exchange order that was just settled.
pub(crate) struct Settled {
    pub(crate) merchant: MerchantId,
    pub(crate) original_order_id: String,
    pub(crate) rma_identifier: String,
    pub(crate) items: Vec<PlacedItem>,
    pub(crate) ordered_at: Timestamp,
    /// Our identifier of the exchange order.
    pub(crate) own_identifier: String,
    /// The identifier in use, if the order is placed.
    pub(crate) exchange_order_identifier: Option<String>,
}

/// Fails with a constraint violation if the original order already has an exchange order.
pub(crate) async fn add(
    conn: &mut AsyncPgConnection,
    order: &NewOrder<'_>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let insert = sql(
        "INSERT INTO exchange_orders (merchant, original_order_id, confirmation, id, \
         transaction_id, delivery, state, items, message, stock_check, price_check, check_detail, \
         ordered_at) \
         VALUES ($1, $2, $3, $4, $5, $6, 'sending', $7, $8, $9, $10, $11, $12)",
        (
            order.merchant.as_str(),
            order.original_order_id,
            order.confirmation,
            Uuid::new_v4(),
            order.transaction_id,
            order.delivery,
            to_json(&order.items)?,
            order.message,
            order.stock_check.as_str(),
            order.price_check.as_str(),
            order.check_detail,
            now,
        ),
    );
    prepared(insert).execute(conn).await?;
    Ok(())
}

platform::rows! {
    struct SettledRow {
        merchant: String,
        original_order_id: String,
        rma_identifier: String,
        items: String,
        ordered_at: Timestamp,
        own_identifier: String,
        exchange_order_identifier: Option<String>,
    }
}

impl SettledRow {
    fn read(self) -> Result<Settled, DatabaseError> {
        Ok(Settled {
            merchant: merchant_id(&self.merchant)?,
            original_order_id: self.original_order_id,
            rma_identifier: self.rma_identifier,
            items: from_json(&self.items)?,
            ordered_at: self.ordered_at,
            own_identifier: self.own_identifier,
            exchange_order_identifier: self.exchange_order_identifier,
        })
    }
}

platform::rows! {
    struct LockedRow {
        state: String,
        abandoned_by: Option<String>,
        abandon_note: Option<String>,
    }
}

platform::rows! { struct DeliveryId { delivery: Uuid } }

/// The delivery of an exchange order, which never changes.
pub(crate) async fn delivery(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    original_order_id: &str,
) -> Result<Option<Uuid>, DatabaseError> {
    let query = sql(
        "SELECT delivery FROM exchange_orders WHERE merchant = $1 AND original_order_id = $2",
        (merchant.as_str(), original_order_id),
    );
    let row: Option<DeliveryId> = query.get_result(conn).await.optional()?;
    Ok(row.map(|row| row.delivery))
}

/// An exchange order that is locked until the transaction ends.
pub(crate) struct Locked {
    pub(crate) state: State,
    pub(crate) abandonment: Option<Abandonment>,
}

/// Locks an exchange order until the transaction ends.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    original_order_id: &str,
) -> Result<Option<Locked>, DatabaseError> {
    let lock = sql(
        "SELECT state, abandoned_by, abandon_note FROM exchange_orders \
         WHERE merchant = $1 AND original_order_id = $2 FOR NO KEY UPDATE",
        (merchant.as_str(), original_order_id),
    );
    let row: Option<LockedRow> = lock.get_result(conn).await.optional()?;
    let locked = |row: LockedRow| {
        let decision = row.abandoned_by.zip(row.abandon_note);
        Ok(Locked {
            state: parse(&row.state)?,
            abandonment: decision.map(|(by, note)| Abandonment { by, note }),
        })
    };
    row.map(locked).transpose()
}

/// Marks an exchange order as placed; `None` if it was placed or abandoned. Our identifier is used if the
/// merchant returned none, or one of the original order or of another exchange order.
///
/// The update runs in a savepoint, because a unique violation would abort the transaction.
pub(crate) async fn place(
    conn: &mut AsyncPgConnection,
    delivery: Uuid,
    response: &ExchangeOrderResponse,
    now: Timestamp,
) -> Result<Option<Settled>, DatabaseError> {
    let Some(name) = response.order_identifier.as_deref() else {
        return place_as(conn, delivery, None, response, now).await;
    };
    let placed = conn
        .transaction(async |conn| place_as(conn, delivery, Some(name), response, now).await)
        .await;
    match placed {
        Err(error) if error.constraint() == Some(BY_NAME) => {
            place_as(conn, delivery, None, response, now).await
        }
        placed => placed,
    }
}

/// Places an exchange order under a name. Without one, and if the name is that of the original order, the order
/// keeps our own name.
async fn place_as(
    conn: &mut AsyncPgConnection,
    delivery: Uuid,
    name: Option<&str>,
    response: &ExchangeOrderResponse,
    now: Timestamp,
) -> Result<Option<Settled>, DatabaseError> {
    let amounts = &response.amounts;
    let update = sql(
        concat!(include_str!("place_order.sql"), include_str!("returning_settled_order.sql")),
        (
            delivery,
            now,
            name,
            amounts.total_amount_cents,
            amounts.tax_amount_cents,
            amounts.shipping_amount_cents,
        ),
    );
    let row: Option<SettledRow> = update.get_result(conn).await.optional()?;
    row.map(SettledRow::read).transpose()
}

/// Gives an exchange order our identifier in place of the merchant's. A repeated event changes nothing.
pub(crate) async fn rename(
    conn: &mut AsyncPgConnection,
    renamed: &ExchangeRenamed,
) -> Result<(), DatabaseError> {
    let update = sql(
        "UPDATE exchange_orders SET exchange_order_identifier = $4 \
         WHERE merchant = $1 AND original_order_id = $2 AND exchange_order_identifier = $3",
        (
            renamed.merchant.as_str(),
            &renamed.original_order_id,
            &renamed.rejected_identifier,
            &renamed.exchange_order_identifier,
        ),
    );
    update.execute(conn).await?;
    Ok(())
}

/// Moves an exchange order into a state without a new order; `None` if it is in none of the states
/// `before`.
pub(crate) async fn fail(
    conn: &mut AsyncPgConnection,
    delivery: Uuid,
    before: &[State],
    after: State,
    now: Timestamp,
) -> Result<Option<Settled>, DatabaseError> {
    let before: Vec<_> = before.iter().map(|state| state.as_str()).collect();
    let update = sql(
        concat!(include_str!("fail_order.sql"), include_str!("returning_settled_order.sql")),
        (delivery, now, before, after.as_str()),
    );
    let row: Option<SettledRow> = update.get_result(conn).await.optional()?;
    row.map(SettledRow::read).transpose()
}

/// Abandons an exchange order that could not be delivered; `None` if it is in another state.
pub(crate) async fn abandon(
    conn: &mut AsyncPgConnection,
    delivery: Uuid,
    abandonment: &Abandonment,
    now: Timestamp,
) -> Result<Option<Settled>, DatabaseError> {
    let update = sql(
        concat!(include_str!("abandon_order.sql"), include_str!("returning_settled_order.sql")),
        (delivery, now, &abandonment.by, &abandonment.note),
    );
    let row: Option<SettledRow> = update.get_result(conn).await.optional()?;
    row.map(SettledRow::read).transpose()
}
