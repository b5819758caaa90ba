//! Units of a return and the parcels that they are in.

use chrono::{DateTime, Utc};
use pages::text::Moment;
use serde::Deserialize;

use super::Return;
use crate::{
    Page,
    listing::{amount, web_url, words},
};

#[derive(Debug, Deserialize)]
pub(super) struct Unit {
    pub(super) order_identifier: String,
    order_line_item_identifier: String,
    unit: i32,
    #[serde(default)]
    sku: String,
    #[serde(default)]
    title: String,
    image_url: Option<String>,
    #[serde(default)]
    return_reason: String,
    #[serde(default)]
    resolution: String,
    variant: Option<Variant>,
    #[serde(default)]
    amounts: Amounts,
    pub(super) exchange_status: Option<String>,
    exchange_order_identifier: Option<String>,
    pub(super) tracking_number: Option<String>,
    labeled_at: Option<DateTime<Utc>>,
    label: Option<Label>,
    pub(super) package_tracking_status: Option<String>,
    #[serde(default)]
    pub(super) receiving_status: String,
    #[serde(default)]
    is_damaged: bool,
    pub(super) refunded_by: Option<String>,
    pub(super) canceled_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Deserialize)]
struct Variant {
    #[serde(default)]
    sku: String,
    #[serde(default)]
    title: String,
}

#[derive(Debug, Default, Deserialize)]
struct Amounts {
    product_amount_cents: i64,
    discount_amount_cents: i64,
    tax_amount_cents: i64,
}

#[derive(Debug, Clone, Deserialize)]
struct Label {
    url: String,
    #[serde(default)]
    kind: String,
}

/// A unit in the table.
pub(super) struct UnitRow {
    pub(super) order: String,
    pub(super) order_url: String,
    pub(super) line: String,
    pub(super) unit: i32,
    pub(super) title: String,
    pub(super) sku: String,
    pub(super) image_url: Option<String>,
    pub(super) reason: String,
    pub(super) resolution: String,
    pub(super) product: String,
    pub(super) discount: String,
    pub(super) tax: String,
    pub(super) paid: String,
    /// Tone and text of each state.
    pub(super) states: Vec<(&'static str, String)>,
}

impl Unit {
    pub(super) fn row(&self, rma: &Return, merchant: &str, currency: Option<&str>) -> UnitRow {
        let Amounts { product_amount_cents, discount_amount_cents, tax_amount_cents } =
            self.amounts;
        let paid = (product_amount_cents - discount_amount_cents + tax_amount_cents).max(0);
        let url = pages::path!("merchants", merchant, "orders", self.order_identifier);
        UnitRow {
            order: self.order_identifier.clone(),
            order_url: format!("/{url}"),
            line: self.order_line_item_identifier.clone(),
            unit: self.unit,
            title: self.title.clone(),
            sku: self.sku.clone(),
            image_url: web_url(self.image_url.as_deref()).map(str::to_owned),
            reason: words(&self.return_reason),
            resolution: self.resolution_words(),
            product: amount(product_amount_cents, currency),
            discount: amount(discount_amount_cents, currency),
            tax: amount(tax_amount_cents, currency),
            paid: amount(paid, currency),
            states: self.states(rma.managed_receiving),
        }
    }

    fn resolution_words(&self) -> String {
        match &self.variant {
            Some(variant) => {
                let name = if variant.title.is_empty() { &variant.sku } else { &variant.title };
                format!("exchange for {name}")
            }
            None => words(&self.resolution),
        }
    }

    fn states(&self, managed_receiving: bool) -> Vec<(&'static str, String)> {
        let canceled = self.canceled_at.map(|_| ("", "canceled".to_owned()));
        let refunded = self.refunded_by.as_ref().map(|it| ("good", format!("refunded by {it}")));
        let received = managed_receiving.then(|| {
            let tone = if self.receiving_status == "RECEIVED" { "good" } else { "info" };
            (tone, format!("receipt {}", words(&self.receiving_status)))
        });
        let damaged = self.is_damaged.then(|| ("bad", "damaged".to_owned()));
        let states =
            [canceled, refunded, self.exchange_state(), self.parcel_state(), received, damaged];
        states.into_iter().flatten().collect()
    }

    fn exchange_state(&self) -> Option<(&'static str, String)> {
        let status = self.exchange_status.as_deref()?;
        let tone = match status {
            "placed" => "good",
            "undeliverable" => "bad",
            "failed" => "warn",
            _ => "info",
        };
        let name = self.exchange_order_identifier.as_ref();
        let name = name.map(|name| format!(" as {name}")).unwrap_or_default();
        Some((tone, format!("exchange {}{name}", words(status))))
    }

    fn parcel_state(&self) -> Option<(&'static str, String)> {
        let status = self.package_tracking_status.as_deref()?;
        let tone = match status {
            "DELIVERED" => "good",
            "FAILURE" | "RETURNED" | "NOT_DROPPED_OFF" => "warn",
            _ => "info",
        };
        Some((tone, format!("parcel {}", words(status))))
    }
}

/// A parcel with its label.
pub(super) struct Parcel {
    pub(super) tracking_number: String,
    pub(super) status: String,
    pub(super) units: usize,
    pub(super) labeled: Option<Moment>,
    pub(super) label_url: Option<String>,
    pub(super) label_kind: &'static str,
}

/// The parcels of the units that were not canceled.
pub(super) fn parcels(rma: &Return, page: &Page) -> Vec<Parcel> {
    let mut parcels: Vec<Parcel> = Vec::new();
    for unit in rma.active_units() {
        let Some(number) = &unit.tracking_number else { continue };
        if let Some(known) = parcels.iter_mut().find(|parcel| parcel.tracking_number == *number) {
            known.units += 1;
            continue;
        }
        let label = unit.label.as_ref();
        parcels.push(Parcel {
            tracking_number: number.clone(),
            status: unit.package_tracking_status.as_deref().map(words).unwrap_or_default(),
            units: 1,
            labeled: unit.labeled_at.map(|at| page.moment(at)),
            label_url: web_url(label.map(|label| label.url.as_str())).map(str::to_owned),
            label_kind: match label.map(|label| label.kind.as_str()) {
                Some("qr_code") => "QR code",
                _ => "Label",
            },
        });
    }
    parcels
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sample;

    #[test]
    fn a_unit_shows_its_amounts_and_states() {
        let unit = json!([{
            "order_identifier": "A/1", "order_line_item_identifier": "1", "unit": 2, "title": "Boot",
            "resolution": "exchange", "variant": { "sku": "BOOT-M", "title": "Boot, M" }, "image_url": "data:x",
            "amounts": { "product_amount_cents": 5000, "discount_amount_cents": 105, "tax_amount_cents": 100 },
            "exchange_status": "undeliverable", "package_tracking_status": "PRE_TRANSIT",
        }]);
        let rma = sample("CREATED", unit);
        let row = rma.units[0].row(&rma, "acme", Some("EUR"));
        assert_eq!(
            (row.paid.as_str(), row.resolution.as_str()),
            ("49.95 EUR", "exchange for Boot, M")
        );
        assert_eq!((row.order_url.as_str(), row.image_url), ("/merchants/acme/orders/A%2F1", None));
        let states: Vec<_> = row.states.iter().map(|(tone, text)| (*tone, text.as_str())).collect();
        assert_eq!(states, [("bad", "exchange undeliverable"), ("info", "parcel pre transit")]);
    }
}
