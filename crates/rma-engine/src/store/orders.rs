//! Orders and the ledgers of their units.
//!
//! Whoever changes what depends on an order's units locks its row first, and orders before
//! returns: so a snapshot and a return of the same order come one after the other.

use std::collections::HashMap;

use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::exchange::ExchangePlaced;
use domain::order::Order;
use platform::Timestamp;
use platform::database::{DatabaseError, prepared};

use super::{read, write};
use crate::ledger::Ledger;

/// A merchant and an identifier in its systems.
pub(crate) type Key<'a> = (&'a str, &'a str);

/// What makes a snapshot newer than another: its `updated_at`, and where that is the same, the
/// place of its event among those of the intake.
pub(crate) type Age = (Timestamp, i64);

/// What a newer snapshot is held against.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) age: Age,
    pub(crate) ledger: Ledger,
}

/// An order as returns see it.
#[derive(Debug, Clone)]
pub(crate) struct Projected {
    pub(crate) order: Order,
    /// The place of the event that told of it.
    pub(crate) sequence: i64,
    pub(crate) ledger: Ledger,
    /// The order that this one was placed in exchange against.
    pub(crate) original_order_identifier: Option<String>,
    /// How many bytes it was read from.
    pub(crate) weight: usize,
}

#[derive(QueryableByName)]
struct KeptRow {
    #[diesel(sql_type = BigInt)]
    place: i64,
    #[diesel(sql_type = Timestamptz)]
    updated_at: Timestamp,
    #[diesel(sql_type = BigInt)]
    sequence: i64,
    /// Only while all of them together are not too much.
    #[diesel(sql_type = Nullable<Text>)]
    ledger: Option<String>,
}

/// Locks what is kept of these orders; none of it is given when there are several and their ledgers
/// have more bytes than `most` together. Keys are sorted, or two callers may wait for each other:
/// rows are locked as they are found, one key after the other. A join would leave PostgreSQL the
/// choice to read the whole table instead, which a plan from when it was empty does.
pub(crate) async fn lock_kept<'a>(
    conn: &mut AsyncPgConnection,
    keys: &[Key<'a>],
    most: usize,
) -> Result<Option<HashMap<Key<'a>, Kept>>, DatabaseError> {
    let most = if keys.len() > 1 { i64::try_from(most).unwrap_or(i64::MAX) } else { i64::MAX };
    let (merchants, identifiers): (Vec<_>, Vec<_>) = keys.iter().copied().unzip();
    let query = diesel::sql_query(
        "SELECT asked.place, kept.updated_at, kept.sequence, \
             CASE WHEN sum(octet_length(kept.ledger)) OVER () <= $3 THEN kept.ledger END AS ledger \
         FROM unnest($1, $2) WITH ORDINALITY AS asked (merchant, identifier, place), LATERAL ( \
             SELECT updated_at, sequence, ledger FROM orders \
             WHERE orders.merchant = asked.merchant AND orders.identifier = asked.identifier \
             FOR NO KEY UPDATE \
         ) AS kept",
    )
    .bind::<Array<Text>, _>(merchants)
    .bind::<Array<Text>, _>(identifiers)
    .bind::<BigInt, _>(most);
    let rows: Vec<KeptRow> = prepared(query).load(conn).await?;
    let mut kept = HashMap::with_capacity(rows.len());
    for row in rows {
        let Some(ledger) = row.ledger else { return Ok(None) };
        let place = usize::try_from(row.place - 1).unwrap_or(usize::MAX);
        if let Some(key) = keys.get(place) {
            let age = (row.updated_at, row.sequence);
            kept.insert(*key, Kept { age, ledger: read(&ledger)? });
        }
    }
    Ok(Some(kept))
}

/// Snapshots on their way in.
#[derive(Default)]
pub(crate) struct Rows<'a> {
    merchants: Vec<&'a str>,
    identifiers: Vec<&'a str>,
    updated_at: Vec<Timestamp>,
    sequences: Vec<i64>,
    documents: Vec<String>,
    ledgers: Vec<String>,
}

impl<'a> Rows<'a> {
    pub(crate) fn push(
        &mut self,
        merchant: &'a MerchantId,
        order: &'a Order,
        sequence: i64,
        ledger: &Ledger,
    ) -> Result<(), DatabaseError> {
        self.merchants.push(merchant.as_str());
        self.identifiers.push(&order.identifier);
        self.updated_at.push(order.updated_at);
        self.sequences.push(sequence);
        self.documents.push(write(order)?);
        self.ledgers.push(write(ledger)?);
        Ok(())
    }
}

/// Adds orders that were not kept. Returns whether none of them was there after all.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    rows: Rows<'_>,
) -> Result<bool, DatabaseError> {
    let expected = rows.identifiers.len();
    Ok(store(conn, rows, "DO NOTHING").await? == expected)
}

/// Replaces orders that are locked. The conflict finds each by its key; an `UPDATE` with a join would
/// read the whole table where a plan from when it was empty is kept.
pub(crate) async fn update(
    conn: &mut AsyncPgConnection,
    rows: Rows<'_>,
) -> Result<(), DatabaseError> {
    let replace = "DO UPDATE SET updated_at = excluded.updated_at, sequence = excluded.sequence, \
                       document = excluded.document, ledger = excluded.ledger";
    store(conn, rows, replace).await?;
    Ok(())
}

/// Says how many rows were written.
async fn store(
    conn: &mut AsyncPgConnection,
    rows: Rows<'_>,
    if_there: &'static str,
) -> Result<usize, DatabaseError> {
    if rows.identifiers.is_empty() {
        return Ok(0);
    }
    let statement = diesel::sql_query(format!(
        "INSERT INTO orders (merchant, identifier, updated_at, sequence, document, ledger) \
         SELECT * FROM unnest($1, $2, $3, $4, $5, $6) \
         ON CONFLICT ON CONSTRAINT orders_pkey {if_there}"
    ))
    .bind::<Array<Text>, _>(rows.merchants)
    .bind::<Array<Text>, _>(rows.identifiers)
    .bind::<Array<Timestamptz>, _>(rows.updated_at)
    .bind::<Array<BigInt>, _>(rows.sequences)
    .bind::<Array<Text>, _>(rows.documents)
    .bind::<Array<Text>, _>(rows.ledgers);
    Ok(prepared(statement).execute(conn).await?)
}

/// Replaces the ledger of an order that is locked, and nothing else.
pub(crate) async fn update_ledger(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifier: &str,
    ledger: &Ledger,
) -> Result<(), DatabaseError> {
    let statement =
        diesel::sql_query("UPDATE orders SET ledger = $3 WHERE merchant = $1 AND identifier = $2")
            .bind::<Text, _>(merchant.as_str())
            .bind::<Text, _>(identifier)
            .bind::<Text, _>(write(ledger)?);
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Whether to keep others from changing what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Looking,
    /// Until the end of the transaction.
    Locking,
}

#[derive(QueryableByName)]
struct ProjectedRow {
    #[diesel(sql_type = Text)]
    document: String,
    #[diesel(sql_type = BigInt)]
    sequence: i64,
    #[diesel(sql_type = Text)]
    ledger: String,
    #[diesel(sql_type = Nullable<Text>)]
    original_order_identifier: Option<String>,
}

/// A merchant's orders of these identifiers; those that are not there are left out.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifiers: &[&str],
    reading: Reading,
) -> Result<Vec<Projected>, DatabaseError> {
    let lock = match reading {
        Reading::Looking => "",
        Reading::Locking => " FOR NO KEY UPDATE OF orders",
    };
    let query = diesel::sql_query(format!(
        "SELECT orders.document, orders.sequence, orders.ledger, \
             exchange_orders.original_order_identifier \
         FROM orders LEFT JOIN exchange_orders USING (merchant, identifier) \
         WHERE orders.merchant = $1 AND orders.identifier = ANY ($2) \
         ORDER BY orders.identifier{lock}"
    ))
    .bind::<Text, _>(merchant.as_str())
    .bind::<Array<Text>, _>(identifiers);
    let rows: Vec<ProjectedRow> = prepared(query).load(conn).await?;
    let projected = |row: ProjectedRow| {
        Ok(Projected {
            order: read(&row.document)?,
            sequence: row.sequence,
            ledger: read(&row.ledger)?,
            original_order_identifier: row.original_order_identifier,
            weight: row.document.len() + row.ledger.len(),
        })
    };
    rows.into_iter().map(projected).collect()
}

/// Remembers that an order is an exchange order, and of which.
pub(crate) async fn note_exchange(
    conn: &mut AsyncPgConnection,
    placed: &ExchangePlaced,
) -> Result<(), DatabaseError> {
    let statement = diesel::sql_query(
        "INSERT INTO exchange_orders (merchant, identifier, original_order_identifier, \
             rma_identifier, placed_at) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT ON CONSTRAINT exchange_orders_pkey DO NOTHING",
    )
    .bind::<Text, _>(placed.merchant.as_str())
    .bind::<Text, _>(&placed.exchange_order_identifier)
    .bind::<Text, _>(&placed.original_order_id)
    .bind::<Text, _>(&placed.rma_identifier)
    .bind::<Timestamptz, _>(placed.placed_at);
    prepared(statement).execute(conn).await?;
    Ok(())
}
