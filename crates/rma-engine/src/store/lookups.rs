//! Look-ups of orders by shoppers, and the failures that limit them.
//!
//! A look-up is inserted as a failure before anything else is read, and deleted if it was none. Parallel
//! look-ups therefore see each other, and the limits hold for them together.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::json::Digest;
use domain::order::{Address, Customer};
use platform::Timestamp;
use platform::database::{DatabaseError, column, prepared, sql};
use serde::Deserialize;

use super::read;

/// A look-up in progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) merchant: &'a MerchantId,
    /// `None` for a deep link that is not valid.
    pub(crate) order_identifier: Option<&'a str>,
    pub(crate) address: &'a str,
    pub(crate) at: Timestamp,
}

impl Attempt<'_> {
    /// The digest that is stored: a shopper may write an e-mail address or a name in place of the number.
    fn order_digest(&self) -> Option<Vec<u8>> {
        self.order_identifier.map(order_digest)
    }
}

/// The digest of an order's number in one spelling. All spellings of a number count together, also those of an order
/// that does not exist: otherwise the limit would tell which orders exist.
fn order_digest(order: &str) -> Vec<u8> {
    let number = order.trim().trim_start_matches('#').trim().to_lowercase();
    Digest::of_text(&number).as_bytes().to_vec()
}

/// The failures that make further look-ups wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Older failures do not count.
    pub(crate) since: Timestamp,
    pub(crate) of_order: u32,
    pub(crate) of_address: u32,
}

/// The parts of an order that shoppers know.
#[derive(Debug, Deserialize)]
pub(crate) struct StoredFacts {
    pub(crate) customer: Customer,
    pub(crate) shipping_address: Address,
    pub(crate) billing_address: Address,
}

/// The state that decides about a look-up.
pub(crate) struct LookedUp {
    /// `None` if the order does not exist.
    pub(crate) facts: Option<StoredFacts>,
    /// If a limit is reached: the time of the failure after whose end another look-up is allowed.
    pub(crate) limited_since: Option<Timestamp>,
}

platform::rows! { struct IdentifierRow { identifier: String } }

/// The first of these identifiers that an order of the merchant has. Each is looked up on its own: a plan with the
/// whole list, made while the table was empty, would read all orders of the merchant.
pub(crate) async fn known_identifier(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifiers: &[String],
) -> Result<Option<String>, DatabaseError> {
    let query = sql(
        "SELECT found.identifier FROM unnest($2) WITH ORDINALITY AS wanted (identifier, place), LATERAL ( \
             SELECT identifier FROM orders AS own \
             WHERE own.merchant = $1 AND own.identifier = wanted.identifier OFFSET 0 \
         ) AS found ORDER BY wanted.place LIMIT 1",
        (merchant.as_str(), identifiers),
    );
    let rows: Vec<IdentifierRow> = prepared(query).get_results(conn).await?;
    Ok(rows.into_iter().next().map(|row| row.identifier))
}

platform::rows! { struct PositionRow { position: i64 } }

/// Inserts a look-up as a failure and returns its position.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    attempt: &Attempt<'_>,
) -> Result<i64, DatabaseError> {
    let statement = sql(
        "INSERT INTO lookup_failures (at, merchant, order_digest, address) \
         VALUES ($1, $2, $3, $4) RETURNING position",
        (attempt.at, attempt.merchant.as_str(), attempt.order_digest(), attempt.address),
    );
    Ok(prepared(statement).get_result::<PositionRow>(conn).await?.position)
}

/// Deletes a look-up that was no failure.
pub(crate) async fn delete(
    conn: &mut AsyncPgConnection,
    position: i64,
) -> Result<(), DatabaseError> {
    let statement = sql("DELETE FROM lookup_failures WHERE position = $1", position);
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Deletes the failures of these orders from before a time. Each order is looked up on its own: a plan with a list of
/// digests, made while the table was empty, would read all failures of the merchant.
pub(crate) async fn delete_of_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    orders: &[String],
    before: Timestamp,
) -> Result<(), DatabaseError> {
    let digests = column(orders, |order| order_digest(order));
    let statement =
        sql(include_str!("delete_failures_of_orders.sql"), (merchant.as_str(), digests, before));
    prepared(statement).execute(conn).await?;
    Ok(())
}

platform::rows! {
    struct LookedUpRow {
        document: Option<String>,
        limited_since: Option<Timestamp>,
    }
}

/// Reads the order and the limits in one statement, which is the same whether the order exists or not.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    attempt: &Attempt<'_>,
    position: i64,
    limits: &Limits,
) -> Result<LookedUp, DatabaseError> {
    let query = sql(
        include_str!("find_lookup_facts.sql"),
        (
            attempt.merchant.as_str(),
            attempt.order_identifier,
            attempt.address,
            limits.since,
            position,
            i64::from(limits.of_order) - 1,
            i64::from(limits.of_address) - 1,
            attempt.order_digest(),
        ),
    );
    let row: LookedUpRow = prepared(query).get_result(conn).await?;
    let facts = row.document.as_deref().map(read).transpose()?;
    Ok(LookedUp { facts, limited_since: row.limited_since })
}
