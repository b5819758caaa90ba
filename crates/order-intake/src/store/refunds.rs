//! Refunds and their lines, which never change and belong to one order and one refund.

use std::collections::HashMap;

use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Binary, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::order::KnownRefund;
use platform::database::{DatabaseError, prepared};
use tokio::try_join;

use super::{WriteError, at, digest};
use crate::books::{Books, Key, NewRefund};

#[derive(QueryableByName)]
struct RefundRow {
    #[diesel(sql_type = BigInt)]
    place: i64,
    #[diesel(sql_type = Text)]
    order_identifier: String,
    #[diesel(sql_type = Binary)]
    digest: Vec<u8>,
}

/// What is stored of these refunds.
pub(crate) async fn known_refunds<'a>(
    mut conn: &AsyncPgConnection,
    keys: &[Key<'a>],
) -> Result<HashMap<Key<'a>, KnownRefund>, DatabaseError> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let (merchants, identifiers): (Vec<_>, Vec<_>) = keys.iter().copied().unzip();
    let query = diesel::sql_query(
        "SELECT asked.place, refunds.order_identifier, refunds.digest \
         FROM unnest($1, $2) WITH ORDINALITY AS asked (merchant, identifier, place) \
         JOIN refunds USING (merchant, identifier)",
    )
    .bind::<Array<Text>, _>(merchants)
    .bind::<Array<Text>, _>(identifiers);
    let rows: Vec<RefundRow> = prepared(query).load(&mut conn).await?;
    let known = rows.into_iter().filter_map(|row| {
        let known = KnownRefund { order: row.order_identifier, digest: digest(&row.digest)? };
        Some((*at(keys, row.place)?, known))
    });
    Ok(known.collect())
}

#[derive(QueryableByName)]
struct LineRow {
    #[diesel(sql_type = BigInt)]
    place: i64,
    #[diesel(sql_type = Text)]
    refund_identifier: String,
}

/// The refunds that these lines belong to, of those that are stored.
pub(crate) async fn known_refund_lines<'a>(
    mut conn: &AsyncPgConnection,
    keys: &[Key<'a>],
) -> Result<HashMap<Key<'a>, String>, DatabaseError> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let (merchants, identifiers): (Vec<_>, Vec<_>) = keys.iter().copied().unzip();
    let query = diesel::sql_query(
        "SELECT asked.place, refund_lines.refund_identifier \
         FROM unnest($1, $2) WITH ORDINALITY AS asked (merchant, identifier, place) \
         JOIN refund_lines USING (merchant, identifier)",
    )
    .bind::<Array<Text>, _>(merchants)
    .bind::<Array<Text>, _>(identifiers);
    let rows: Vec<LineRow> = prepared(query).load(&mut conn).await?;
    let known =
        rows.into_iter().filter_map(|row| Some((*at(keys, row.place)?, row.refund_identifier)));
    Ok(known.collect())
}

/// Writes what is new, unless someone else has written some of it meanwhile.
pub(super) async fn write(conn: &AsyncPgConnection, books: &Books<'_>) -> Result<(), WriteError> {
    let refunds = write_refunds(conn, books.new_refunds().collect());
    let lines = write_lines(conn, books.new_refund_lines().collect());
    try_join!(refunds, lines)?;
    Ok(())
}

async fn write_refunds(
    mut conn: &AsyncPgConnection,
    refunds: Vec<NewRefund<'_>>,
) -> Result<(), WriteError> {
    if refunds.is_empty() {
        return Ok(());
    }
    let (merchants, identifiers): (Vec<_>, Vec<_>) = refunds.iter().map(|it| it.key).unzip();
    let orders: Vec<_> = refunds.iter().map(|it| it.known.order.as_str()).collect();
    let digests: Vec<&[u8]> = refunds.iter().map(|it| &it.known.digest.as_bytes()[..]).collect();
    let seen: Vec<_> = refunds.iter().map(|it| it.received_at).collect();
    let statement = diesel::sql_query(
        "INSERT INTO refunds (merchant, identifier, order_identifier, digest, first_seen_at) \
         SELECT * FROM unnest($1, $2, $3, $4, $5) \
         ON CONFLICT ON CONSTRAINT refunds_pkey DO NOTHING",
    )
    .bind::<Array<Text>, _>(merchants)
    .bind::<Array<Text>, _>(identifiers)
    .bind::<Array<Text>, _>(orders)
    .bind::<Array<Binary>, _>(digests)
    .bind::<Array<Timestamptz>, _>(seen);
    let written = prepared(statement).execute(&mut conn).await?;
    if written == refunds.len() { Ok(()) } else { Err(WriteError::Raced) }
}

async fn write_lines(
    mut conn: &AsyncPgConnection,
    lines: Vec<(Key<'_>, &str)>,
) -> Result<(), WriteError> {
    if lines.is_empty() {
        return Ok(());
    }
    let (merchants, identifiers): (Vec<_>, Vec<_>) = lines.iter().map(|(key, _)| *key).unzip();
    let refunds: Vec<_> = lines.iter().map(|(_, refund)| *refund).collect();
    let statement = diesel::sql_query(
        "INSERT INTO refund_lines (merchant, identifier, refund_identifier) \
         SELECT * FROM unnest($1, $2, $3) ON CONFLICT ON CONSTRAINT refund_lines_pkey DO NOTHING",
    )
    .bind::<Array<Text>, _>(merchants)
    .bind::<Array<Text>, _>(identifiers)
    .bind::<Array<Text>, _>(refunds);
    let written = prepared(statement).execute(&mut conn).await?;
    if written == lines.len() { Ok(()) } else { Err(WriteError::Raced) }
}
