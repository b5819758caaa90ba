//! The columns of the orders to write, as the parameters of a statement.

use diesel::sql_types::{Array, Binary, Nullable, Text, Timestamptz};
use domain::order::OrderStatus;
use messaging::SqlStatement;
use platform::Timestamp;

use super::line_identifiers::{SEPARATOR, searchable};
use crate::write_batch::{Key, Row};

#[derive(Default)]
pub(super) struct OrderColumns<'a> {
    merchants: Vec<&'a str>,
    identifiers: Vec<&'a str>,
    statuses: Vec<&'static str>,
    emails: Vec<Option<String>>,
    lines: Vec<String>,
    created_at: Vec<Timestamp>,
    updated_at: Vec<Timestamp>,
    digests: Vec<&'a [u8]>,
    documents: Vec<&'a str>,
    received_at: Vec<Timestamp>,
    /// Merchants and digests of the stored rows that are replaced. A digest identifies the order, because it
    /// covers the order's identifier.
    replaced_merchants: Vec<&'a str>,
    replaced_digests: Vec<Vec<u8>>,
}

impl<'a> OrderColumns<'a> {
    pub(super) fn push(&mut self, (merchant, identifier): Key<'a>, row: &Row<'a>) {
        let Row { published, received_at, replaces } = row;
        let order = &published.snapshot.order;
        let lines: Vec<_> = order.items.iter().map(|line| searchable(&line.identifier)).collect();
        self.merchants.push(merchant);
        self.identifiers.push(identifier);
        self.statuses.push(match order.status {
            OrderStatus::Created => "Created",
            OrderStatus::Shipped => "Shipped",
            OrderStatus::Cancelled => "Cancelled",
        });
        self.emails.push(order.customer.email_address().map(str::to_lowercase));
        self.lines.push(lines.join(SEPARATOR));
        self.created_at.push(order.created_at);
        self.updated_at.push(order.updated_at);
        self.digests.push(published.snapshot.digest.as_bytes());
        self.documents.push(&published.document);
        self.received_at.push(*received_at);
        self.replaced_merchants.extend(replaces.map(|_| merchant));
        self.replaced_digests.extend(replaces.map(|digest| digest.as_bytes().to_vec()));
    }

    /// Binds `$5` to `$17`.
    pub(super) fn bind(self, statement: SqlStatement<'a>) -> SqlStatement<'a> {
        statement
            .bind::<Array<Text>, _>(self.merchants)
            .bind::<Array<Text>, _>(self.identifiers)
            .bind::<Array<Text>, _>(self.statuses)
            .bind::<Array<Nullable<Text>>, _>(self.emails)
            .bind::<Array<Text>, _>(self.lines)
            .bind::<Array<Timestamptz>, _>(self.created_at)
            .bind::<Array<Timestamptz>, _>(self.updated_at)
            .bind::<Array<Binary>, _>(self.digests)
            .bind::<Array<Text>, _>(self.documents)
            .bind::<Array<Timestamptz>, _>(self.received_at)
            .bind::<Array<Text>, _>(self.replaced_merchants)
            .bind::<Array<Binary>, _>(self.replaced_digests)
            .bind::<Text, _>(SEPARATOR)
    }
}
