//! Units of a return and the parcels that they are in.

use chrono::{DateTime, Utc};
use pages::path;
use serde::Deserialize;

use super::Return;
use crate::{
    Page,
    listing::{amount, web_url, words},
    markup::{Markup, badge, link, outside, text},
    table::Table,
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

impl Unit {
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

pub(super) fn unit_table(rma: &Return, merchant: &str, currency: Option<&str>) -> Table {
    let states = |it: &Unit| {
        let states = it.states(rma.managed_receiving).into_iter();
        states.map(|(tone, state)| badge(tone, state)).reduce(Markup::and).unwrap_or_default()
    };
    Table::of("Units of the return", &rma.units)
        .head("Product", |it| {
            let picture = web_url(it.image_url.as_deref()).map(|url| outside(url, "Picture"));
            text(&it.title).and(text(&it.sku).classed("muted")).and_some(picture)
        })
        .cell("State", states)
        .cell("Order", |it| {
            let order = path!("merchants", merchant, "orders", it.order_identifier);
            let unit = format!(", line {}, unit {}", it.order_line_item_identifier, it.unit);
            link(format!("/{order}"), &it.order_identifier).with(text(unit))
        })
        .cell("Reason", |it| text(words(&it.return_reason)))
        .cell("Instead", |it| text(it.resolution_words()))
        .classed("number nowrap", "Paid", |it| {
            let Amounts { product_amount_cents, discount_amount_cents, tax_amount_cents } =
                it.amounts;
            let paid = (product_amount_cents - discount_amount_cents + tax_amount_cents).max(0);
            let part = |name: &str, cents| text(format!("{name} {}", amount(cents, currency)));
            let parts = part("price", product_amount_cents)
                .below(part("discount", discount_amount_cents))
                .below(part("tax", tax_amount_cents));
            text(amount(paid, currency)).below(parts.classed("small muted"))
        })
        .table()
}

/// The parcels of the units that were not canceled, with the number of their units.
pub(super) fn parcel_table(rma: &Return, page: &Page) -> Table {
    let mut parcels: Vec<(&Unit, &str, usize)> = Vec::new();
    for unit in rma.active_units() {
        let Some(number) = &unit.tracking_number else { continue };
        match parcels.iter_mut().find(|(_, known, _)| known == number) {
            Some((_, _, units)) => *units += 1,
            None => parcels.push((unit, number, 1)),
        }
    }
    Table::of("Parcels", &parcels)
        .wrapped_head("Tracking number", |(_, number, _)| text(number))
        .cell("State", |(it, ..)| {
            text(it.package_tracking_status.as_deref().map(words).unwrap_or_default())
        })
        .number("Units", |(.., units)| text(units))
        .cell("Label", |(it, ..)| {
            let label = it.label.as_ref().and_then(Label::link).unwrap_or_default();
            label.and_some(it.labeled_at.map(|at| page.time(at)))
        })
        .table()
}

impl Label {
    fn link(&self) -> Option<Markup> {
        let name = if self.kind == "qr_code" { "QR code" } else { "Label" };
        web_url(Some(&self.url)).map(|url| outside(url, name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::sample, *};

    #[test]
    fn a_unit_shows_its_amounts_and_states() {
        let unit = json!([{
            "order_identifier": "A/1", "order_line_item_identifier": "1", "unit": 2, "title": "Boot",
            "resolution": "exchange", "variant": { "sku": "BOOT-M", "title": "Boot, M" }, "image_url": "data:x",
            "amounts": { "product_amount_cents": 5000, "discount_amount_cents": 105, "tax_amount_cents": 100 },
            "exchange_status": "undeliverable", "package_tracking_status": "PRE_TRANSIT",
        }]);
        let table = unit_table(&sample("CREATED", unit), "acme", Some("EUR")).to_string();
        for part in [
            ">49.95 EUR<br>",
            ">exchange for Boot, M</td>",
            r#"href="/merchants/acme/orders/A%2F1""#,
            r#"<span class="badge bad">exchange undeliverable</span>"#,
            r#"<span class="badge info">parcel pre transit</span>"#,
        ] {
            assert!(table.contains(part), "{part} in {table}");
        }
        assert!(!table.contains("Picture"), "{table}");
    }
}
