//! The orders of the portal, made from the catalogue of the sandbox.

use std::time::Duration;

use anyhow::Context as _;
use platform::Timestamp;
use serde_json::{Value, json};
use url::Url;

use crate::scenario::context::text_at;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const SHIPPING_CENTS: i64 = 595;

pub(super) struct Buyer {
    pub(super) identifier: &'static str,
    pub(super) name: &'static str,
    pub(super) zip_code: &'static str,
}

impl Buyer {
    pub(super) fn email(&self) -> String {
        format!("{}@shopper.example", self.identifier)
    }
}

pub(super) struct Line {
    sku: &'static str,
    quantity: i64,
    discount_cents: i64,
    shipped_days_ago: u32,
    /// A tag that forbids a return, or an empty text.
    tag: &'static str,
}

const fn line(sku: &'static str, quantity: i64) -> Line {
    Line { sku, quantity, discount_cents: 0, shipped_days_ago: 4, tag: "" }
}

/// Several units of one line with a discount, a heavy item, a final sale, and a line whose window is over.
pub(super) const FIRST: &[Line] = &[
    Line { discount_cents: 500, ..line("COTTON-TEE-RUST-M", 2) },
    line("TRAIL-SHOE-NAVY-42", 1),
    line("FAMILY-TENT-OLIVE", 1),
    Line { tag: "FinalSale", ..line("FELT-HAT-SAND-M", 1) },
    Line { shipped_days_ago: 60, ..line("RAIN-JACKET-RUST-L", 1) },
];
pub(super) const SECOND: &[Line] = &[line("LINEN-SHIRT-SAND-L", 1), line("CANVAS-BAG-NAVY", 1)];
pub(super) const GIFT: &[Line] =
    &[line("WOOL-SWEATER-BERRY-M", 1), line("WOOL-SOCKS-OLIVE-36–40", 2)];

/// The catalogue of the sandbox.
pub(super) struct Catalogue {
    variants: Vec<Value>,
}

impl Catalogue {
    pub(super) fn new(mut catalogue: Value) -> Self {
        let products = catalogue.get_mut("products").and_then(Value::as_array_mut);
        let variants = products.into_iter().flatten().filter_map(|product| {
            product.get_mut("variants").and_then(Value::as_array_mut).map(std::mem::take)
        });
        Self { variants: variants.flatten().collect() }
    }

    /// The host of the pictures, with its port.
    pub(super) fn image_host(&self) -> Option<String> {
        let url = Url::parse(&text_at(self.variants.first()?, "/image_url")).ok()?;
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    }

    /// The order as the merchant sends it.
    pub(super) fn order(
        &self,
        identifier: &str,
        buyer: &Buyer,
        lines: &[Line],
        now: Timestamp,
    ) -> anyhow::Result<Value> {
        let items = lines.iter().map(|line| self.item(line, now));
        let items = items.collect::<anyhow::Result<Vec<_>>>()?;
        let sum =
            |key: &str| -> i64 { items.iter().filter_map(|item| item.get(key)?.as_i64()).sum() };
        let [product, tax, discount] =
            ["product_amount_cents", "tax_amount_cents", "discount_amount_cents"].map(sum);
        let days = lines.iter().map(|line| line.shipped_days_ago).max().unwrap_or_default();
        let address = json!({ "name": buyer.name, "street1": "12 Mill Road", "city": "Albany",
            "state": "NY", "zip_code": buyer.zip_code, "country_code": "US" });
        Ok(json!({
            "identifier": identifier, "status": "Shipped", "currency": "USD",
            "product_amount_cents": product, "tax_amount_cents": tax,
            "discount_amount_cents": discount, "shipping_amount_cents": SHIPPING_CENTS,
            "shipping_tax_amount_cents": 0,
            "total_amount_cents": product + tax - discount + SHIPPING_CENTS,
            "created_at": now - DAY * (days + 1), "updated_at": now,
            "items": items, "refunds": [], "transactions": [], "discounts": [],
            "customer": { "identifier": buyer.identifier, "email": buyer.email() },
            "shipping_address": address, "billing_address": address,
        }))
    }

    fn item(&self, line: &Line, now: Timestamp) -> anyhow::Result<Value> {
        let Line { sku, quantity, discount_cents, shipped_days_ago, tag } = *line;
        let variant = self.variants.iter().find(|variant| text_at(variant, "/sku") == sku);
        let variant = variant.with_context(|| format!("the catalogue has no SKU {sku}"))?;
        let price = variant.get("unit_price_amount_cents").and_then(Value::as_i64);
        let price = price.with_context(|| format!("{sku} has no price"))?;
        let product = price * quantity;
        let tags: Vec<_> = Some(tag).filter(|tag| !tag.is_empty()).into_iter().collect();
        Ok(json!({
            "identifier": sku, "sku": sku, "title": variant.get("title"), "quantity": quantity,
            "quantity_shipped": quantity, "quantity_canceled": 0,
            "shipped_date": now - DAY * shipped_days_ago,
            "product_identifier": variant.get("product_identifier"),
            "variant_identifier": variant.get("product_identifier"),
            "unit_price_amount_cents": price, "product_amount_cents": product,
            "tax_amount_cents": (product - discount_cents) * 8 / 100,
            "discount_amount_cents": discount_cents,
            "image_url": variant.get("image_url"), "weight": variant.get("weight"), "tags": tags,
        }))
    }
}

#[cfg(test)]
mod tests {
    use domain::json::Document;
    use domain::order::{OrderMessage, OrderPolicy};
    use platform::Clock;

    use super::*;

    const BUYER: Buyer = Buyer { identifier: "ada", name: "Ada Adler", zip_code: "12207" };

    async fn catalogue() -> (sandbox::Running, Catalogue) {
        let settings = sandbox::settings::Settings::for_tests().unwrap();
        let sandbox = sandbox::start(&settings).unwrap();
        let http = platform::http_client(Duration::from_secs(120)).unwrap();
        let response = http.get(sandbox.url("/catalogue")).send().await.unwrap();
        let catalogue = Catalogue::new(response.json().await.unwrap());
        (sandbox, catalogue)
    }

    #[tokio::test]
    async fn the_orders_are_valid_and_their_amounts_add_up() {
        let (sandbox, catalogue) = catalogue().await;
        let now = Clock::system().now();
        let orders =
            [FIRST, SECOND, GIFT].map(|lines| catalogue.order("S-1", &BUYER, lines, now).unwrap());
        let message = json!({ "returns_portal_order": { "orders": orders } });
        let policy = OrderPolicy { strict_amounts: true, strict_refund_dates: true };
        let read = OrderMessage::read(&Document::from(message), policy, now).unwrap();
        assert_eq!(read.snapshots.len(), 3);
        let host = sandbox.address.to_string();
        assert_eq!(catalogue.image_host(), Some(host));
    }
}
