//! The newest snapshot of an order, as order-intake stored it.

use chrono::{DateTime, Utc};
use pages::text::{Moment, money};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::document::{Address, Customer, Document, Line, Refund};
use crate::{
    Page,
    listing::{indented, web_url},
};

/// A longer document is not shown.
const MAX_SHOWN_BYTES: usize = 64 * 1024;

#[derive(Debug, Deserialize)]
pub(super) struct StoredOrder {
    status: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    received_at: DateTime<Utc>,
    document: Box<RawValue>,
}

/// The snapshot on the page.
pub(super) struct Snapshot {
    pub(super) status: String,
    pub(super) tone: &'static str,
    pub(super) created: Moment,
    pub(super) updated: Moment,
    pub(super) received: Moment,
    pub(super) raw_status: Option<String>,
    pub(super) customer: String,
    pub(super) email: Option<String>,
    pub(super) ships_to: String,
    pub(super) note: Option<String>,
    pub(super) tags: Vec<String>,
    /// Names and values of the order's amounts.
    pub(super) amounts: Vec<(&'static str, String)>,
    pub(super) lines: Vec<LineRow>,
    pub(super) refunds: Vec<RefundRow>,
    /// The document, unless it is long.
    pub(super) document: Option<String>,
    /// Whether the document has another form than expected.
    pub(super) is_unreadable: bool,
}

pub(super) struct LineRow {
    pub(super) identifier: String,
    pub(super) title: String,
    pub(super) sku: String,
    pub(super) image_url: Option<String>,
    pub(super) tracking_number: Option<String>,
    pub(super) quantity: i64,
    pub(super) shipped: i64,
    pub(super) canceled: i64,
    pub(super) unit_price: String,
    pub(super) product: String,
    pub(super) discount: String,
    pub(super) tax: String,
}

pub(super) struct RefundRow {
    pub(super) identifier: String,
    pub(super) amount: String,
    pub(super) rma_identifier: Option<String>,
    pub(super) note: String,
    pub(super) created: Moment,
}

impl Snapshot {
    pub(super) fn new(stored: StoredOrder, page: &Page) -> Self {
        let text = stored.document.get();
        let read = serde_json::from_str::<Document>(text);
        let is_unreadable = read.is_err();
        let document = read.unwrap_or_default();
        let currency = document.currency.clone();
        let customer = document.customer.as_ref();
        Self {
            tone: if stored.status == "Cancelled" { "warn" } else { "info" },
            status: stored.status,
            created: page.moment(stored.created_at),
            updated: page.moment(stored.updated_at),
            received: page.moment(stored.received_at),
            customer: customer.map(Customer::name).unwrap_or_default(),
            email: customer.and_then(Customer::email).map(str::to_owned),
            ships_to: document.shipping_address.as_ref().map(Address::line).unwrap_or_default(),
            amounts: document.amounts(),
            lines: document.items.into_iter().map(|line| line.row(&currency)).collect(),
            refunds: document.refunds.into_iter().map(|it| it.row(&currency, page)).collect(),
            raw_status: document.raw_status,
            note: document.note,
            tags: document.tags.unwrap_or_default(),
            document: (text.len() <= MAX_SHOWN_BYTES).then(|| indented(text)),
            is_unreadable,
        }
    }
}

impl Line {
    fn row(self, currency: &str) -> LineRow {
        LineRow {
            sku: self.sku.or(self.upc).unwrap_or_default(),
            image_url: web_url(self.image_url.as_deref()).map(str::to_owned),
            tracking_number: self.tracking_number.filter(|number| !number.is_empty()),
            quantity: self.quantity,
            shipped: self.quantity_shipped,
            canceled: self.quantity_canceled,
            unit_price: money(self.unit_price_amount_cents, currency),
            product: money(self.product_amount_cents, currency),
            discount: money(self.discount_amount_cents, currency),
            tax: money(self.tax_amount_cents, currency),
            identifier: self.identifier,
            title: self.title,
        }
    }
}

impl Refund {
    fn row(self, currency: &str, page: &Page) -> RefundRow {
        RefundRow {
            amount: money(self.total_refund_amount_cents, currency),
            created: page.moment(self.created_at),
            identifier: self.identifier,
            rma_identifier: self.rma_identifier.filter(|rma| !rma.is_empty()),
            note: self.note.unwrap_or_default(),
        }
    }
}
