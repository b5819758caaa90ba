//! Queries of refunds and their lines. A refund belongs to one order, a line to one refund. Rows are
//! inserted and never updated. The `rma_identifier` of a refund can change, so the digest leaves it out.

use diesel::sql_types::{Array, Binary, Text, Timestamptz};
use domain::json::Digest;
use messaging::SqlStatement;

use super::write_mode::WriteMode;
use crate::write_batch::{Key, NewRefund, WriteBatch};

/// New refunds and their lines.
pub(super) struct RefundRows<'a> {
    refunds: Vec<NewRefund<'a>>,
    lines: Vec<(Key<'a>, Digest)>,
}

/// No stored refund or line differs from a new one.
pub(super) const REFUNDS_UNCHANGED: &str = include_str!("refunds_unchanged.sql");
pub(super) const INSERT_REFUNDS: &str = include_str!("insert_refunds.sql");

/// Every refund and line was inserted by the statement, or stored before it.
pub(super) fn complete(mode: WriteMode) -> String {
    let each = [("seen", "refunds", 18), ("seen_lines", "refund_lines", 23)];
    let conditions = each.map(|(new, table, first)| {
        let stored = match mode {
            WriteMode::Checked => "0".to_owned(),
            WriteMode::Optimistic => format!(
                "(SELECT count(*) FROM unnest(${first}, ${}) AS requested (merchant, identifier), \
                 LATERAL ( \
                     SELECT FROM {table} \
                     WHERE merchant = requested.merchant AND identifier = requested.identifier LIMIT 1 \
                 ) AS stored)",
                first + 1
            ),
        };
        format!("(SELECT count(*) FROM {new}) + {stored} = cardinality(${first})")
    });
    conditions.join(" AND ")
}

impl<'a> RefundRows<'a> {
    pub(super) fn of(batch: &'a WriteBatch<'_>) -> Self {
        let refunds = batch.new_refunds().collect();
        let lines = batch.new_refund_lines().collect();
        Self { refunds, lines }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.refunds.is_empty() && self.lines.is_empty()
    }

    /// Binds `$18` to `$25`.
    pub(super) fn bind(self, statement: SqlStatement<'a>) -> SqlStatement<'a> {
        let Self { refunds, lines } = self;
        let refund = |text: fn(&NewRefund<'a>) -> &'a str| refunds.iter().map(text).collect();
        let refund_digest = |digest: fn(&NewRefund<'a>) -> Digest| {
            refunds.iter().map(|it| digest(it).as_bytes().to_vec()).collect()
        };
        let line = |text: fn(&Key<'a>) -> &'a str| lines.iter().map(|(key, _)| text(key)).collect();
        statement
            .bind::<Array<Text>, Vec<&str>>(refund(|it| it.key.0))
            .bind::<Array<Text>, Vec<&str>>(refund(|it| it.key.1))
            .bind::<Array<Binary>, Vec<Vec<u8>>>(refund_digest(|it| it.version.order))
            .bind::<Array<Binary>, Vec<Vec<u8>>>(refund_digest(|it| it.version.digest))
            .bind::<Array<Timestamptz>, Vec<_>>(refunds.iter().map(|it| it.received_at).collect())
            .bind::<Array<Text>, Vec<&str>>(line(|(merchant, _)| merchant))
            .bind::<Array<Text>, Vec<&str>>(line(|(_, identifier)| identifier))
            .bind::<Array<Binary>, Vec<Vec<u8>>>(
                lines.iter().map(|(_, refund)| refund.as_bytes().to_vec()).collect(),
            )
    }
}
