//! The newest snapshot of an order, as order-intake stored it.

use api::orders::StoredOrder;
use pages::text::money;

use super::document::{Address, Customer, Document};
use crate::{
    Page,
    markup::{link, outside, text, text_or_dash},
    record_list::{indented, query_string, web_url},
    states::order_tone,
    table::Table,
};

/// A longer document is not shown.
const MAX_SHOWN_BYTES: usize = 64 * 1024;

/// The snapshot on the page.
pub(super) struct Snapshot {
    pub(super) stored: StoredOrder,
    pub(super) document: Document,
    /// Whether the document has another form than expected.
    pub(super) is_unreadable: bool,
    pub(super) lines: Table,
    pub(super) refunds: Table,
}

impl Snapshot {
    pub(super) fn new(stored: StoredOrder, merchant: &str, page: &Page) -> Self {
        let read = serde_json::from_str::<Document>(stored.document.get());
        let is_unreadable = read.is_err();
        let document = read.unwrap_or_default();
        Self {
            lines: document.line_table(),
            refunds: document.refund_table(merchant, page),
            stored,
            document,
            is_unreadable,
        }
    }

    pub(super) fn tone(&self) -> &'static str {
        order_tone(&self.stored.status)
    }

    pub(super) fn customer(&self) -> String {
        self.document.customer.as_ref().map(Customer::name).unwrap_or_default()
    }

    pub(super) fn email(&self) -> Option<&str> {
        self.document.customer.as_ref()?.email()
    }

    pub(super) fn ships_to(&self) -> String {
        self.document.shipping_address.as_ref().map(Address::line).unwrap_or_default()
    }

    /// The document as it was received, unless it is long.
    pub(super) fn text(&self) -> Option<String> {
        let text = self.stored.document.get();
        (text.len() <= MAX_SHOWN_BYTES).then(|| indented(text))
    }
}

impl Document {
    fn money(&self, cents: i64) -> String {
        money(cents, &self.currency)
    }

    fn line_table(&self) -> Table {
        Table::of("Lines of the order", &self.items)
            .head("Line", |it| text(&it.identifier))
            .cell("Product", |it| {
                let sku = it.sku.as_ref().or(it.upc.as_ref()).map_or("", String::as_str);
                let picture = web_url(it.image_url.as_deref()).map(|url| outside(url, "Picture"));
                text(&it.title).and(text(sku).classed("muted")).and_some(picture)
            })
            .cell("Quantity", |it| {
                let shipped = format!("{} shipped", it.quantity_shipped);
                let canceled = format!("{} canceled", it.quantity_canceled);
                let more = text(shipped).below(text(canceled)).classed("small muted");
                text(format!("{} ordered", it.quantity)).below(more)
            })
            .classed("number", "Amounts", |it| {
                let amount = |name: &str, cents| text(format!("{name} {}", self.money(cents)));
                let more = amount("unit price", it.unit_price_amount_cents)
                    .below(amount("discount", it.discount_amount_cents))
                    .below(amount("tax", it.tax_amount_cents));
                amount("products", it.product_amount_cents).below(more.classed("small muted"))
            })
            .wrapped("Parcel", |it| text_or_dash(filled(it.tracking_number.as_ref())))
            .table()
    }

    fn refund_table(&self, merchant: &str, page: &Page) -> Table {
        let rma = |rma: &String| {
            let query = query_string(&[("merchant", merchant), ("q", rma)]);
            link(format!("/lookup?{query}"), rma)
        };
        Table::of("Refunds of the order", &self.refunds)
            .head("Refund", |it| text(&it.identifier))
            .classed("number nowrap", "Amount", |it| text(self.money(it.total_refund_amount_cents)))
            .cell("Return", |it| {
                filled(it.rma_identifier.as_ref()).map_or_else(|| text("not named"), rma)
            })
            .cell("Paid", |it| page.time(it.created_at))
            .cell("Note", |it| it.note.as_ref().map(text).unwrap_or_default())
            .table()
    }
}

/// A text that is not empty.
fn filled(text: Option<&String>) -> Option<&String> {
    text.filter(|text| !text.is_empty())
}
