//! Searches exchanges.

use api::exchange::{Abandonment, ExchangeOrderView, State};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::MerchantId;
use domain::exchange::OrderAmounts;
use platform::Timestamp;
use platform::database::{
    DatabaseError, Each, IndexRange, is_truncated, limit_page_bytes, prepared, sql,
};
use platform::http::ListOrder;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{from_json, parse};

/// Search conditions; all that are set must match.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) merchant: Option<MerchantId>,
    pub(crate) original_order_id: Option<String>,
    pub(crate) rma_identifier: Option<String>,
    pub(crate) exchange_order_identifier: Option<String>,
    /// A UUID.
    pub(crate) transaction_id: Option<String>,
    pub(crate) state: Option<State>,
    pub(crate) order: ListOrder,
    /// The last position of the previous page.
    pub(crate) after: Option<i64>,
}

/// The SQL of the next parameter, with this value. The first two are numbers.
fn bind<'a>(values: &mut Vec<&'a str>, value: &'a str) -> String {
    values.push(value);
    format!("${}", values.len() + 2)
}

impl Search {
    pub(crate) fn has_identifier(&self) -> bool {
        let identifiers = [
            &self.original_order_id,
            &self.rma_identifier,
            &self.exchange_order_identifier,
            &self.transaction_id,
        ];
        identifiers.into_iter().any(Option::is_some)
    }

    fn is_newest_first(&self) -> bool {
        self.order == ListOrder::Newest
    }

    /// The position before the first exchange.
    fn start(&self) -> i64 {
        if self.is_newest_first() { i64::MAX } else { i64::MIN }
    }

    fn is_of_order(&self) -> bool {
        self.state.is_some_and(State::is_of_order)
    }

    /// The few exchanges with an identifier. Only conditions that are set go into the query, so that
    /// PostgreSQL uses the right index.
    fn by_identifier<'a>(&'a self, values: &mut Vec<&'a str>) -> String {
        let merchant = self.merchant.as_ref().map(MerchantId::as_str);
        let name = self.exchange_order_identifier.as_deref();
        let transaction = self.transaction_id.as_deref();
        let is_of_placed = name.or(transaction).is_some();
        let state_of = if self.is_of_order() { "placed.state" } else { "own.state" };
        let is_after = if self.is_newest_first() { "<" } else { ">" };
        let mut sql = format!(
            "confirmations AS own LEFT JOIN exchange_orders AS placed \
             ON placed.confirmation = own.position WHERE position {is_after} $1"
        );
        for (value, column) in [
            (merchant, "own.merchant"),
            (merchant.filter(|_| is_of_placed), "placed.merchant"),
            (self.original_order_id.as_deref(), "own.original_order_id"),
            (self.rma_identifier.as_deref(), "rma_identifier"),
            (name, "exchange_order_identifier"),
            (self.state.map(State::as_str), state_of),
        ] {
            if let Some(value) = value {
                sql.push_str(&format!(" AND {column} = {}", bind(values, value)));
            }
        }
        if let Some(transaction) = transaction {
            sql.push_str(&format!(" AND transaction_id = {}::uuid", bind(values, transaction)));
        }
        sql
    }

    /// The exchanges of a merchant, a state, both or all: those of the page, in the order of an index, and then
    /// the other half of each.
    fn by_position<'a>(&'a self, values: &mut Vec<&'a str>) -> String {
        let merchant = self.merchant.as_ref().map(MerchantId::as_str);
        let columns = [(merchant, "merchant"), (self.state.map(State::as_str), "state")];
        let fixed = columns.into_iter().filter_map(|(value, column)| Some((value?, column)));
        let fixed: Vec<_> = fixed.map(|(value, column)| (column, bind(values, value))).collect();
        let position = if self.is_of_order() { "confirmation" } else { "position" };
        let range = IndexRange { fixed: &fixed, sorted: &[position] };
        let is_newest = self.is_newest_first();
        let page = format!(
            "WHERE {} AND {} ORDER BY {} LIMIT $2",
            merchant.map_or("merchant IS DISTINCT FROM ''", |_| "true"),
            range.condition((!is_newest).then_some((">", "$1")), is_newest.then_some(("<", "$1"))),
            range.order(self.order.direction())
        );
        if self.is_of_order() {
            format!(
                "(SELECT * FROM exchange_orders {page}) AS placed CROSS JOIN LATERAL ( \
                     SELECT * FROM confirmations WHERE position = placed.confirmation LIMIT 1 \
                 ) AS own"
            )
        } else {
            format!(
                "(SELECT * FROM confirmations {page}) AS own LEFT JOIN LATERAL ( \
                     SELECT * FROM exchange_orders WHERE confirmation = own.position LIMIT 1 \
                 ) AS placed ON true"
            )
        }
    }
}

platform::rows! {
    struct Row {
        position: i64,
        merchant: String,
        original_order_id: String,
        rma_identifier: String,
        state: String,
        failed: String,
        received_at: Timestamp,
        ordered_at: Option<Timestamp>,
        settled_at: Option<Timestamp>,
        exchange_order_identifier: Option<String>,
        transaction_id: Option<Uuid>,
        delivery: Option<Uuid>,
        items: Option<String>,
        stock_check: Option<String>,
        price_check: Option<String>,
        check_detail: Option<String>,
        total_amount_cents: Option<i64>,
        tax_amount_cents: Option<i64>,
        shipping_amount_cents: Option<i64>,
        abandoned_by: Option<String>,
        abandon_note: Option<String>,
        /// Number of matching rows before the byte limit.
        found: i64,
    }
}

const COLUMNS: &str = "position, own.merchant, own.original_order_id, rma_identifier, \
     COALESCE(placed.state, own.state) AS state, failed, received_at, ordered_at, \
     settled_at, exchange_order_identifier, transaction_id, delivery, items, stock_check, \
     price_check, check_detail, total_amount_cents, tax_amount_cents, shipping_amount_cents, \
     abandoned_by, abandon_note, \
     octet_length(failed) + COALESCE(octet_length(items), 0) \
     + COALESCE(octet_length(abandon_note), 0) AS weight";

/// Exchanges with their positions: up to `most`, fewer if they exceed the byte limit of
/// a page. The flag tells whether that limit cut the page.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    search: &Search,
    most: i64,
) -> Result<(Vec<(i64, ExchangeOrderView)>, bool), DatabaseError> {
    let order = format!("position {}", search.order.direction());
    let (weighing, cutting) = limit_page_bytes(&order);
    let mut values = Vec::new();
    let exchanges = if search.has_identifier() {
        search.by_identifier(&mut values)
    } else {
        search.by_position(&mut values)
    };
    let query = sql(
        format!("{weighing}SELECT {COLUMNS} FROM {exchanges} ORDER BY {order} LIMIT $2{cutting}"),
        (search.after.unwrap_or(search.start()), most, Each(values)),
    );
    // Planned each time: a plan that was made while the tables were empty would read all exchanges of the merchant.
    let rows: Vec<Row> = query.load(conn).await?;
    let is_truncated = is_truncated(&rows, |row| row.found);
    let exchanges: Result<_, DatabaseError> =
        rows.into_iter().map(|row| Ok((row.position, row.read()?))).collect();
    Ok((exchanges?, is_truncated))
}

impl Row {
    fn read(self) -> Result<ExchangeOrderView, DatabaseError> {
        let amounts = OrderAmounts {
            total_amount_cents: self.total_amount_cents,
            tax_amount_cents: self.tax_amount_cents,
            shipping_amount_cents: self.shipping_amount_cents,
        };
        Ok(ExchangeOrderView {
            merchant: self.merchant,
            original_order_id: self.original_order_id,
            rma_identifier: self.rma_identifier,
            state: parse(&self.state)?,
            exchange_order_identifier: self.exchange_order_identifier,
            amounts,
            transaction_id: self.transaction_id,
            delivery: self.delivery,
            items: self.items.as_deref().map(from_json).transpose()?.unwrap_or_default(),
            failed: from_json(&self.failed)?,
            stock_check: self.stock_check.as_deref().map(parse).transpose()?,
            price_check: self.price_check.as_deref().map(parse).transpose()?,
            check_detail: self.check_detail,
            received_at: self.received_at,
            ordered_at: self.ordered_at,
            settled_at: self.settled_at,
            abandonment: self
                .abandoned_by
                .zip(self.abandon_note)
                .map(|(by, note)| Abandonment { by, note }),
        })
    }
}

platform::rows! { struct Message { message: String } }

/// The message that was sent to the merchant.
pub(crate) async fn message(
    conn: &mut AsyncPgConnection,
    delivery: Uuid,
) -> Result<Box<RawValue>, DatabaseError> {
    let query = sql("SELECT message FROM exchange_orders WHERE delivery = $1", delivery);
    from_json(&prepared(query).get_result::<Message>(conn).await?.message)
}

platform::rows! { struct Earlier { original_order_id: String } }

/// The orders that led to this one through exchanges, oldest first. Merchants choose the identifiers,
/// which may form a cycle, so each order is returned once.
pub(crate) async fn earlier_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    original_order_id: &str,
) -> Result<Vec<String>, DatabaseError> {
    let query = sql(include_str!("earlier_orders.sql"), (merchant.as_str(), original_order_id));
    let rows: Vec<Earlier> = prepared(query).load(conn).await?;
    Ok(rows.into_iter().map(|row| row.original_order_id).collect())
}
