//! Refunds and their lines, which never change and belong to one order and one refund.

use diesel::sql_types::{Array, Binary, Text, Timestamptz};
use domain::json::Digest;
use messaging::SqlStatement;

use super::Basis;
use crate::books::{Books, Key, Late, NewRefund};

/// What is written beside the orders, if there is any: refunds, their lines, and what came too late.
pub(super) struct Rest<'a> {
    refunds: Vec<NewRefund<'a>>,
    lines: Vec<(Key<'a>, Digest)>,
    late: &'a [Late<'a>],
}

/// The stored refunds and lines are the same as the new ones.
pub(super) const REFUNDS_UNCHANGED: &str = "NOT EXISTS ( \
         SELECT FROM unnest($18, $19, $20, $21) \
             AS new (merchant, identifier, order_digest, digest), LATERAL ( \
             SELECT FROM refunds WHERE merchant = new.merchant AND identifier = new.identifier \
                 AND (order_digest <> new.order_digest OR digest <> new.digest) LIMIT 1 \
         ) AS other \
     ) AND NOT EXISTS ( \
         SELECT FROM unnest($23, $24, $25) AS new (merchant, identifier, refund_digest), \
         LATERAL ( \
             SELECT FROM refund_lines \
             WHERE merchant = new.merchant AND identifier = new.identifier \
                 AND refund_digest <> new.refund_digest LIMIT 1 \
         ) AS other \
     )";
pub(super) const INSERT_REST: &str = ", seen AS ( \
         INSERT INTO refunds (merchant, identifier, order_digest, digest, first_seen_at) \
         SELECT * FROM unnest($18, $19, $20, $21, $22) WHERE (SELECT holds FROM precondition) \
         ON CONFLICT ON CONSTRAINT refunds_pkey DO NOTHING RETURNING 1 \
     ), seen_lines AS ( \
         INSERT INTO refund_lines (merchant, identifier, refund_digest) \
         SELECT * FROM unnest($23, $24, $25) WHERE (SELECT holds FROM precondition) \
         ON CONFLICT ON CONSTRAINT refund_lines_pkey DO NOTHING RETURNING 1 \
     ), late AS ( \
         INSERT INTO stale_snapshots \
             (merchant, order_identifier, digest, updated_at, received_at) \
         SELECT * FROM unnest($26, $27, $28, $29, $30) AS late (merchant, order_identifier, \
             digest, updated_at, received_at) \
         WHERE (SELECT holds FROM precondition) \
         ORDER BY merchant, order_identifier, digest \
         ON CONFLICT ON CONSTRAINT stale_snapshots_pkey DO NOTHING \
     )";

/// Every refund and line was inserted, or was stored before the statement.
pub(super) fn complete(basis: Basis) -> String {
    let each = [("seen", "refunds", 18), ("seen_lines", "refund_lines", 23)];
    let conditions = each.map(|(new, table, first)| {
        let known = match basis {
            Basis::Reading => "0".to_owned(),
            Basis::Hope => format!(
                "(SELECT count(*) FROM unnest(${first}, ${}) AS asked (merchant, identifier), \
                 LATERAL ( \
                     SELECT FROM {table} \
                     WHERE merchant = asked.merchant AND identifier = asked.identifier LIMIT 1 \
                 ) AS known)",
                first + 1
            ),
        };
        format!("(SELECT count(*) FROM {new}) + {known} = cardinality(${first})")
    });
    conditions.join(" AND ")
}

impl<'a> Rest<'a> {
    pub(super) fn of(books: &'a Books<'_>) -> Self {
        let (refunds, lines) = (books.new_refunds().collect(), books.new_refund_lines().collect());
        Self { refunds, lines, late: books.late() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.refunds.is_empty() && self.lines.is_empty() && self.late.is_empty()
    }

    /// Binds `$18` to `$30`.
    pub(super) fn bind(self, statement: SqlStatement<'a>) -> SqlStatement<'a> {
        let Self { refunds, lines, late } = self;
        let refund = |text: fn(&NewRefund<'a>) -> &'a str| refunds.iter().map(text).collect();
        let refund_digest = |digest: fn(&NewRefund<'a>) -> Digest| {
            refunds.iter().map(|it| digest(it).as_bytes().to_vec()).collect()
        };
        let line = |text: fn(&Key<'a>) -> &'a str| lines.iter().map(|(key, _)| text(key)).collect();
        let order = |it: &Late<'a>| it.snapshot.order.identifier.as_str();
        statement
            .bind::<Array<Text>, Vec<&str>>(refund(|it| it.key.0))
            .bind::<Array<Text>, Vec<&str>>(refund(|it| it.key.1))
            .bind::<Array<Binary>, Vec<Vec<u8>>>(refund_digest(|it| it.known.order))
            .bind::<Array<Binary>, Vec<Vec<u8>>>(refund_digest(|it| it.known.digest))
            .bind::<Array<Timestamptz>, Vec<_>>(refunds.iter().map(|it| it.received_at).collect())
            .bind::<Array<Text>, Vec<&str>>(line(|(merchant, _)| merchant))
            .bind::<Array<Text>, Vec<&str>>(line(|(_, identifier)| identifier))
            .bind::<Array<Binary>, Vec<Vec<u8>>>(
                lines.iter().map(|(_, refund)| refund.as_bytes().to_vec()).collect(),
            )
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
