//! The document of an order, as far as the page shows it. Merchants leave out fields and write whole
//! numbers with a fraction, so everything optional has a default.

use chrono::{DateTime, Utc};
use pages::text::money;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Number;

/// The order as the merchant published it, as far as the page shows it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) currency: String,
    #[serde(default, deserialize_with = "cents")]
    pub(super) total_amount_cents: i64,
    #[serde(default, deserialize_with = "cents")]
    pub(super) product_amount_cents: i64,
    #[serde(default, deserialize_with = "cents")]
    pub(super) tax_amount_cents: i64,
    #[serde(default, deserialize_with = "cents")]
    pub(super) discount_amount_cents: i64,
    #[serde(default, deserialize_with = "cents")]
    pub(super) shipping_amount_cents: i64,
    #[serde(default, deserialize_with = "cents")]
    pub(super) shipping_tax_amount_cents: i64,
    pub(super) raw_status: Option<String>,
    pub(super) note: Option<String>,
    pub(super) tags: Option<Vec<String>>,
    #[serde(alias = "the service")]
    pub(super) customer: Option<Customer>,
    pub(super) shipping_address: Option<Address>,
    #[serde(default)]
    pub(super) items: Vec<Line>,
    #[serde(default)]
    pub(super) refunds: Vec<Refund>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Customer {
    pub(super) identifier: Option<String>,
    pub(super) first_name: Option<String>,
    pub(super) last_name: Option<String>,
    pub(super) email: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Address {
    pub(super) city: Option<String>,
    pub(super) zip_code: Option<String>,
    pub(super) country_code: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Line {
    pub(super) identifier: String,
    pub(super) sku: Option<String>,
    pub(super) upc: Option<String>,
    #[serde(default)]
    pub(super) title: String,
    #[serde(default, deserialize_with = "cents")]
    pub(super) quantity: i64,
    #[serde(default, deserialize_with = "cents")]
    pub(super) quantity_shipped: i64,
    #[serde(default, deserialize_with = "cents")]
    pub(super) quantity_canceled: i64,
    #[serde(default, deserialize_with = "cents")]
    pub(super) unit_price_amount_cents: i64,
    #[serde(default, deserialize_with = "cents")]
    pub(super) product_amount_cents: i64,
    #[serde(default, deserialize_with = "cents")]
    pub(super) discount_amount_cents: i64,
    #[serde(default, deserialize_with = "cents")]
    pub(super) tax_amount_cents: i64,
    pub(super) image_url: Option<String>,
    pub(super) tracking_number: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Refund {
    pub(super) identifier: String,
    #[serde(default, deserialize_with = "cents")]
    pub(super) total_refund_amount_cents: i64,
    pub(super) rma_identifier: Option<String>,
    pub(super) note: Option<String>,
    pub(super) created_at: DateTime<Utc>,
}

/// Merchants may send a whole number with a fraction of zero.
fn cents<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let number = Number::deserialize(deserializer)?;
    let whole = || number.as_f64().filter(|float| float.fract() == 0.0)?.to_string().parse().ok();
    number.as_i64().or_else(whole).ok_or_else(|| D::Error::custom("not a whole number"))
}

impl Document {
    pub(super) fn amounts(&self) -> Vec<(&'static str, String)> {
        let amounts = [
            ("Products", self.product_amount_cents),
            ("Discount", self.discount_amount_cents),
            ("Tax", self.tax_amount_cents),
            ("Shipping", self.shipping_amount_cents),
            ("Tax on shipping", self.shipping_tax_amount_cents),
            ("Total", self.total_amount_cents),
        ];
        amounts.map(|(name, cents)| (name, money(cents, &self.currency))).into()
    }
}

impl Customer {
    pub(super) fn name(&self) -> String {
        let name = joined([&self.first_name, &self.last_name], " ");
        if name.is_empty() { self.identifier.clone().unwrap_or_default() } else { name }
    }

    /// The e-mail address, which some merchants send only as the identifier.
    pub(super) fn email(&self) -> Option<&str> {
        let identifier = || self.identifier.as_deref().filter(|text| text.contains('@'));
        self.email.as_deref().or_else(identifier)
    }
}

impl Address {
    pub(super) fn line(&self) -> String {
        joined([&self.zip_code, &self.city, &self.country_code], ", ")
    }
}

fn joined<const N: usize>(parts: [&Option<String>; N], separator: &str) -> String {
    let parts = parts.into_iter().flatten().map(String::as_str);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_with_missing_fields() {
        let text = r#"{"currency": "EUR", "total_amount_cents": 4995.0, "the service": {"email": "a@b.test"},
            "items": [{"identifier": "1", "quantity": 2, "unit_price_amount_cents": 1000}], "tags": null}"#;
        let document: Document = serde_json::from_str(text).unwrap();
        assert_eq!(document.amounts().last().unwrap().1, "49.95 EUR");
        let customer = document.customer.as_ref().unwrap();
        assert_eq!((customer.name().as_str(), customer.email()), ("", Some("a@b.test")));
        let line = document.items.first().unwrap();
        assert_eq!((line.unit_price_amount_cents, line.quantity_shipped), (1000, 0));
    }
}
