//! The columns of the orders to write, as the parameters of a statement.

use domain::order::{Order, OrderStatus};
use platform::database::{Parameters, column};

use super::line_identifiers::{SEPARATOR, searchable};
use crate::write_batch::{Key, Row};

/// `$5` to `$17`.
pub(super) fn parameters<'a>(rows: &'a [(Key<'a>, Row<'a>)]) -> impl Parameters<'a> {
    let order = |row: &'a Row<'a>| &row.published.snapshot.order;
    // A digest identifies the order that is replaced, because it covers the order's identifier.
    let replaced =
        || rows.iter().filter_map(|((merchant, _), row)| Some((*merchant, row.replaces?)));
    let (merchants, digests): (Vec<_>, Vec<_>) =
        replaced().map(|(merchant, digest)| (merchant, digest.as_bytes().to_vec())).unzip();
    (
        column(rows, |((merchant, _), _)| *merchant),
        column(rows, |((_, identifier), _)| *identifier),
        column(rows, |(_, row)| status(order(row).status)),
        column(rows, |(_, row)| order(row).customer.email_address().map(str::to_lowercase)),
        column(rows, |(_, row)| lines(order(row))),
        column(rows, |(_, row)| order(row).created_at),
        column(rows, |(_, row)| order(row).updated_at),
        column(rows, |(_, row)| row.published.snapshot.digest.as_bytes().to_vec()),
        column(rows, |(_, row)| row.published.document.as_str()),
        column(rows, |(_, row)| row.received_at),
        merchants,
        digests,
        SEPARATOR,
    )
}

fn status(status: OrderStatus) -> &'static str {
    match status {
        OrderStatus::Created => "Created",
        OrderStatus::Shipped => "Shipped",
        OrderStatus::Cancelled => "Cancelled",
    }
}

fn lines(order: &Order) -> String {
    let lines: Vec<_> = order.items.iter().map(|line| searchable(&line.identifier)).collect();
    lines.join(SEPARATOR)
}
