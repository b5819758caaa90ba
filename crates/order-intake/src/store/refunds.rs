//! Refunds and their lines, which never change and belong to one order and one refund.

use diesel::sql_types::{Array, Binary, Text, Timestamptz};
use messaging::Statement;

use crate::books::{Books, Key, Late, NewRefund};

/// What is written beside the orders, if there is any: refunds, their lines, and what came too late.
pub(super) struct Rest<'a> {
    refunds: Vec<NewRefund<'a>>,
    lines: Vec<(Key<'a>, &'a str)>,
    late: &'a [Late<'a>],
}

/// They are still unknown.
pub(super) const FIT: &str = "NOT EXISTS ( \
         SELECT FROM unnest($12, $13) AS new (merchant, identifier), LATERAL ( \
             SELECT FROM refunds \
             WHERE merchant = new.merchant AND identifier = new.identifier LIMIT 1 \
         ) AS known \
     ) AND NOT EXISTS ( \
         SELECT FROM unnest($17, $18) AS new (merchant, identifier), LATERAL ( \
             SELECT FROM refund_lines \
             WHERE merchant = new.merchant AND identifier = new.identifier LIMIT 1 \
         ) AS known \
     )";
pub(super) const REST: &str = ", seen AS ( \
         INSERT INTO refunds (merchant, identifier, order_identifier, digest, first_seen_at) \
         SELECT * FROM unnest($12, $13, $14, $15, $16) WHERE (SELECT holds FROM fits) \
         ON CONFLICT ON CONSTRAINT refunds_pkey DO NOTHING RETURNING 1 \
     ), seen_lines AS ( \
         INSERT INTO refund_lines (merchant, identifier, refund_identifier) \
         SELECT * FROM unnest($17, $18, $19) WHERE (SELECT holds FROM fits) \
         ON CONFLICT ON CONSTRAINT refund_lines_pkey DO NOTHING RETURNING 1 \
     ), late AS ( \
         INSERT INTO stale_snapshots \
             (merchant, order_identifier, digest, updated_at, received_at) \
         SELECT * FROM unnest($20, $21, $22, $23, $24) AS late (merchant, order_identifier, \
             digest, updated_at, received_at) \
         WHERE (SELECT holds FROM fits) \
         ORDER BY merchant, order_identifier, digest \
         ON CONFLICT ON CONSTRAINT stale_snapshots_pkey DO NOTHING \
     )";
pub(super) const REST_BOUND: usize = 24;
/// Nobody else wrote some of it meanwhile.
pub(super) const COMPLETE: &str = "(SELECT count(*) FROM seen) = cardinality($12) \
     AND (SELECT count(*) FROM seen_lines) = cardinality($17)";

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
