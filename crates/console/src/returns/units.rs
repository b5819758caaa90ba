//! Units of a return and the parcels that they are in.

use domain::returns::{Amounts, GuaranteeState, Label, LabelKind, Resolution, Rma, RmaUnit};
use pages::path;

use super::active_units;
use crate::{
    Page,
    markup::{Markup, badge, link, outside, text},
    record_list::{amount, web_url, words},
    states::Shown as _,
    table::Table,
};

fn resolution_words(resolution: &Resolution) -> String {
    match resolution {
        Resolution::Refund => "refund".to_owned(),
        Resolution::GiftCard => "gift card".to_owned(),
        Resolution::Exchange { variant } => {
            let name = if variant.title.is_empty() { &variant.sku } else { &variant.title };
            format!("exchange for {name}")
        }
    }
}

/// Tones and words of the states of a unit.
fn states(
    unit: &RmaUnit,
    managed_receiving: bool,
    currency: Option<&str>,
) -> Vec<(&'static str, String)> {
    let canceled = if unit.is_expired { "expired" } else { "canceled" };
    let canceled = unit.canceled_at.map(|_| ("", canceled.to_owned()));
    let refunded = unit.refunded_by.as_ref().map(|it| ("good", format!("refunded by {it}")));
    let exchange = unit.exchange_status.map(|status| {
        let name = unit.exchange_order_identifier.as_ref();
        let name = name.map(|name| format!(" as {name}")).unwrap_or_default();
        (status.tone(), format!("exchange {}{name}", status.words()))
    });
    let parcel = unit
        .package_tracking_status
        .map(|status| (status.tone(), format!("parcel {}", status.words())));
    let status = unit.receiving_status;
    let received =
        managed_receiving.then(|| (status.tone(), format!("receipt {}", status.words())));
    let guarantee = unit.guarantee.as_ref().map(|it| {
        let words = match it.state {
            GuaranteeState::Open => "has to come back".to_owned(),
            GuaranteeState::Met => "came back".to_owned(),
            GuaranteeState::Due => {
                format!("not returned: {} due", amount(it.amount_cents, currency))
            }
            GuaranteeState::Waived => "waived".to_owned(),
        };
        (it.state.tone(), words)
    });
    let damaged = unit.is_damaged.then(|| ("bad", "damaged".to_owned()));
    [canceled, refunded, exchange, guarantee, parcel, received, damaged]
        .into_iter()
        .flatten()
        .collect()
}

pub(super) fn unit_table(rma: &Rma, merchant: &str, currency: Option<&str>) -> Table {
    let badges = |it: &RmaUnit| {
        let states = states(it, rma.managed_receiving, currency).into_iter();
        states.map(|(tone, state)| badge(tone, state)).reduce(Markup::and).unwrap_or_default()
    };
    Table::of("Units of the return", &rma.units)
        .head("Product", |it| {
            let picture = web_url(it.image_url.as_deref()).map(|url| outside(url, "Picture"));
            text(&it.title).and(text(&it.sku).classed("muted")).and_some(picture)
        })
        .cell("State", badges)
        .cell("Order", |it| {
            let order = path!("merchants", merchant, "orders", it.id.order_identifier);
            let unit = format!(", line {}, unit {}", it.id.order_line_item_identifier, it.id.unit);
            link(format!("/{order}"), &it.id.order_identifier).with(text(unit))
        })
        .wrapped("Reason", |it| {
            let comment = it.comment.as_ref().map(|comment| text(format!("“{comment}”")));
            text(words(&it.return_reason)).below_some(comment)
        })
        .cell("Instead", |it| text(resolution_words(&it.resolution)))
        .classed("number nowrap", "Paid", |it| {
            let Amounts { product_amount_cents, discount_amount_cents, tax_amount_cents } =
                it.amounts;
            let paid = it.amounts.paid();
            let part = |name: &str, cents| text(format!("{name} {}", amount(cents, currency)));
            let parts = part("price", product_amount_cents)
                .below(part("discount", discount_amount_cents))
                .below(part("tax", tax_amount_cents));
            text(amount(paid, currency)).below(parts.classed("small muted"))
        })
        .table()
}

/// The parcels of the units that were not canceled, with the number of their units.
pub(super) fn parcel_table(rma: &Rma, page: &Page) -> Table {
    let mut parcels: Vec<(&RmaUnit, &str, usize)> = Vec::new();
    for unit in active_units(rma) {
        let Some(number) = &unit.tracking_number else { continue };
        match parcels.iter_mut().find(|(_, known, _)| known == number) {
            Some((_, _, units)) => *units += 1,
            None => parcels.push((unit, number, 1)),
        }
    }
    Table::of("Parcels", &parcels)
        .wrapped_head("Tracking number", |(_, number, _)| text(number))
        .cell("State", |(it, ..)| text(it.package_tracking_status.map(words).unwrap_or_default()))
        .number("Units", |(.., units)| text(units))
        .cell("Label", |(it, ..)| {
            let label = it.label.as_ref().and_then(label_link).unwrap_or_default();
            label.and_some(it.labeled_at.map(|at| page.time(at)))
        })
        .table()
}

fn label_link(label: &Label) -> Option<Markup> {
    let name = match label.kind {
        LabelKind::QrCode => "QR code",
        LabelKind::Printable => "Label",
    };
    web_url(Some(&label.url)).map(|url| outside(url, name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn a_unit_shows_its_amounts_and_states() {
        let unit = json!({
            "order_identifier": "A/1", "order_line_item_identifier": "1", "unit": 2, "title": "Boot",
            "resolution": "exchange", "variant": { "sku": "BOOT-M", "title": "Boot, M" }, "image_url": "data:x",
            "amounts": { "product_amount_cents": 5000, "discount_amount_cents": 105, "tax_amount_cents": 100 },
            "comment": "Too <tight>", "exchange_status": "undeliverable", "package_tracking_status": "PRE_TRANSIT",
            "guarantee": { "state": "due", "started_at": "2026-11-16T08:00:00Z", "amount_cents": 4995 },
        });
        let table = unit_table(&fixtures::rma("CREATED", &[unit]), "acme", Some("EUR")).to_string();
        for part in [
            ">49.95 EUR<br>",
            ">exchange for Boot, M</td>",
            "“Too &#60;tight&#62;”",
            r#"href="/merchants/acme/orders/A%2F1""#,
            r#"<span class="badge bad">exchange undeliverable</span>"#,
            r#"<span class="badge info">parcel pre transit</span>"#,
            r#"<span class="badge bad">not returned: 49.95 EUR due</span>"#,
        ] {
            assert!(table.contains(part), "{part} in {table}");
        }
        assert!(!table.contains("Picture"), "{table}");
    }
}
