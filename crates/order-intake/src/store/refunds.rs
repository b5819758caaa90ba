//! Refunds and their lines, which never change and belong to one order and one refund.

use std::collections::HashMap;

use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Binary, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::order::KnownRefund;
use messaging::Statement;
use platform::database::{DatabaseError, prepared};

use super::{at, digest};
use crate::books::{Books, Key, Late, NewRefund};

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
         FROM unnest($1, $2) WITH ORDINALITY AS asked (merchant, identifier, place), LATERAL ( \
             SELECT order_identifier, digest FROM refunds \
             WHERE merchant = asked.merchant AND identifier = asked.identifier LIMIT 1 \
         ) AS refunds",
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
         FROM unnest($1, $2) WITH ORDINALITY AS asked (merchant, identifier, place), LATERAL ( \
             SELECT refund_identifier FROM refund_lines \
             WHERE merchant = asked.merchant AND identifier = asked.identifier LIMIT 1 \
         ) AS refund_lines",
    )
    .bind::<Array<Text>, _>(merchants)
    .bind::<Array<Text>, _>(identifiers);
    let rows: Vec<LineRow> = prepared(query).load(&mut conn).await?;
    let known =
        rows.into_iter().filter_map(|row| Some((*at(keys, row.place)?, row.refund_identifier)));
    Ok(known.collect())
}

/// What is written beside the orders, if there is any: refunds, their lines, and what came too late.
pub(super) struct Rest<'a> {
    refunds: Vec<NewRefund<'a>>,
    lines: Vec<(Key<'a>, &'a str)>,
    late: &'a [Late<'a>],
}

pub(super) const REST: &str = ", seen AS ( \
         INSERT INTO refunds (merchant, identifier, order_identifier, digest, first_seen_at) \
         SELECT * FROM unnest($14, $15, $16, $17, $18) \
         ON CONFLICT ON CONSTRAINT refunds_pkey DO NOTHING RETURNING 1 \
     ), seen_lines AS ( \
         INSERT INTO refund_lines (merchant, identifier, refund_identifier) \
         SELECT * FROM unnest($19, $20, $21) \
         ON CONFLICT ON CONSTRAINT refund_lines_pkey DO NOTHING RETURNING 1 \
     ), late AS ( \
         INSERT INTO stale_snapshots \
             (merchant, order_identifier, digest, updated_at, received_at) \
         SELECT * FROM unnest($22, $23, $24, $25, $26) AS late (merchant, order_identifier, \
             digest, updated_at, received_at) \
         ORDER BY merchant, order_identifier, digest \
         ON CONFLICT ON CONSTRAINT stale_snapshots_pkey DO NOTHING \
     ) ";
pub(super) const REST_BOUND: usize = 26;
/// Nobody else wrote some of it meanwhile.
pub(super) const COMPLETE: &str = "(SELECT count(*) FROM seen) = cardinality($14) \
     AND (SELECT count(*) FROM seen_lines) = cardinality($19)";

impl<'a> Rest<'a> {
    pub(super) fn of(books: &'a Books<'_>) -> Self {
        let (refunds, lines) = (books.new_refunds().collect(), books.new_refund_lines().collect());
        Self { refunds, lines, late: books.late() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.refunds.is_empty() && self.lines.is_empty() && self.late.is_empty()
    }

    /// After the orders.
    pub(super) fn bind(self, statement: Statement<'a>) -> Statement<'a> {
        let Self { refunds, lines, late } = self;
        let refund = |text: fn(&NewRefund<'a>) -> &'a str| refunds.iter().map(text).collect();
        let line = |text: fn(&(Key<'a>, &'a str)) -> &'a str| lines.iter().map(text).collect();
        let order = |it: &Late<'a>| it.snapshot.order.identifier.as_str();
        statement
            .bind::<Array<Text>, Vec<&str>>(refund(|it| it.key.0))
            .bind::<Array<Text>, Vec<&str>>(refund(|it| it.key.1))
            .bind::<Array<Text>, Vec<String>>(
                refunds.iter().map(|it| it.known.order.clone()).collect(),
            )
            .bind::<Array<Binary>, Vec<Vec<u8>>>(
                refunds.iter().map(|it| it.known.digest.as_bytes().to_vec()).collect(),
            )
            .bind::<Array<Timestamptz>, Vec<_>>(refunds.iter().map(|it| it.received_at).collect())
            .bind::<Array<Text>, Vec<&str>>(line(|((merchant, _), _)| merchant))
            .bind::<Array<Text>, Vec<&str>>(line(|((_, identifier), _)| identifier))
            .bind::<Array<Text>, Vec<&str>>(line(|(_, refund)| refund))
            .bind::<Array<Text>, Vec<_>>(late.iter().map(|it| it.merchant.as_str()).collect())
            .bind::<Array<Text>, Vec<_>>(late.iter().map(order).collect())
            .bind::<Array<Binary>, Vec<_>>(
                late.iter().map(|it| &it.snapshot.digest.as_bytes()[..]).collect(),
            )
            .bind::<Array<Timestamptz>, Vec<_>>(
                late.iter().map(|it| it.snapshot.order.updated_at).collect(),
            )
            .bind::<Array<Timestamptz>, Vec<_>>(late.iter().map(|it| it.received_at).collect())
    }
}
