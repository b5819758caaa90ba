//! Queries of refunds and their lines. A refund belongs to one order, a line to one refund. Rows are
//! inserted and never updated. The `rma_identifier` of a refund can change, so the digest leaves it out.

use domain::json::Digest;

use super::write_mode::WriteMode;
use crate::write_batch::{Key, NewRefund, WriteBatch};
use platform::database::{Parameters, column};

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

    /// `$18` to `$22` are the refunds and `$23` to `$25` their lines, in the column order of `insert_refunds.sql`.
    pub(super) fn parameters<'r>(&'r self) -> impl Parameters<'r> {
        let Self { refunds, lines } = self;
        (
            column(refunds, |it| it.key.0),
            column(refunds, |it| it.key.1),
            column(refunds, |it| it.version.order_digest.as_bytes().to_vec()),
            column(refunds, |it| it.version.digest.as_bytes().to_vec()),
            column(refunds, |it| it.received_at),
            column(lines, |((merchant, _), _)| *merchant),
            column(lines, |((_, identifier), _)| *identifier),
            column(lines, |(_, refund_digest)| refund_digest.as_bytes().to_vec()),
        )
    }
}
