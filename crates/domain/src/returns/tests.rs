mod contract;
mod event_sequences;
mod expiry;
mod guarantees;
mod labels;
mod lifecycle;
mod message;
mod money;
mod order_discounts;
mod receiving;
mod refund_amounts;
mod refund_matching;
mod request;
mod reviews;
mod shipped_units;
mod state_machines;
mod work_lists;

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::*;
use crate::merchant::Settings;
use crate::order::sample::Orders;
use crate::order::{Order, OrderLine};

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// A time this many minutes after the start of a test.
fn minute(minutes: i64) -> DateTime<Utc> {
    time("2026-03-10T12:00:00Z") + TimeDelta::minutes(minutes)
}

fn amounts(product: i64, discount: i64, tax: i64) -> Amounts {
    Amounts {
        product_amount_cents: product,
        discount_amount_cents: discount,
        tax_amount_cents: tax,
    }
}

/// A line with all units shipped.
fn line(identifier: &str, shipped: i64, all: Amounts) -> OrderLine {
    let sample = Orders::new(1, minute(0)).at(0).items.remove(0);
    OrderLine {
        identifier: identifier.to_owned(),
        quantity: shipped.max(1),
        quantity_shipped: shipped,
        quantity_canceled: 0,
        product_amount_cents: all.product_amount_cents,
        discount_amount_cents: all.discount_amount_cents,
        tax_amount_cents: all.tax_amount_cents,
        tags: Vec::new(),
        ..sample
    }
}

/// An order without shipping costs and with the sums of its lines.
fn order(identifier: &str, items: Vec<OrderLine>) -> Order {
    let sample = Orders::new(1, minute(0)).at(0);
    let sum = |amount: fn(&OrderLine) -> i64| items.iter().map(amount).sum();
    let product_amount_cents = sum(|line| line.product_amount_cents);
    let tax_amount_cents = sum(|line| line.tax_amount_cents);
    let discount_amount_cents = sum(|line| line.discount_amount_cents);
    Order {
        identifier: identifier.to_owned(),
        product_amount_cents,
        tax_amount_cents,
        discount_amount_cents,
        shipping_amount_cents: 0,
        shipping_tax_amount_cents: 0,
        total_amount_cents: product_amount_cents + tax_amount_cents - discount_amount_cents,
        items,
        refunds: Vec::new(),
        ..sample
    }
}

/// `"A/L1/2"` is the second unit of line L1 of order A.
fn unit(path: &str) -> UnitId {
    let parts: Vec<_> = path.split('/').collect();
    UnitId {
        order_identifier: parts[0].to_owned(),
        order_line_item_identifier: parts[1].to_owned(),
        unit: parts[2].parse().unwrap(),
    }
}

fn path(id: &UnitId) -> String {
    format!("{}/{}/{}", id.order_identifier, id.order_line_item_identifier, id.unit)
}

fn paths(ids: &[UnitId]) -> String {
    ids.iter().map(path).collect::<Vec<_>>().join(" ")
}

fn variant(unit_price_amount_cents: i64) -> Resolution {
    let sku = "SHIRT-L".to_owned();
    let title = "Shirt, L".to_owned();
    let price = Some(unit_price_amount_cents);
    let variant = Variant { sku, title, unit_price_amount_cents: price, product_identifier: None };
    Resolution::Exchange { variant }
}

fn settings(managed_receiving: bool) -> Settings {
    Settings { managed_receiving, ..Settings::new("Acme") }
}

/// A return of units that cost 1000 and 80 tax each, after 100 discount.
fn rma_with(
    identifier: &str,
    method: ReturnMethod,
    units: &[(&str, Resolution)],
    settings: &Settings,
) -> Rma {
    rma_in_review(identifier, method, units, settings, None)
}

/// Such a return, which waits for this review if there is one.
fn rma_in_review(
    identifier: &str,
    method: ReturnMethod,
    units: &[(&str, Resolution)],
    settings: &Settings,
    review: Option<&ReturnReview>,
) -> Rma {
    let requested: Vec<_> = units
        .iter()
        .map(|(path, resolution)| RequestedUnit {
            id: unit(path),
            return_reason: "TOO_SMALL".to_owned(),
            comment: None,
            resolution: resolution.clone(),
        })
        .collect();
    let purchased = PurchasedUnit {
        sku: "SHIRT-M".to_owned(),
        upc: Some("0012345".to_owned()),
        title: "Shirt, M".to_owned(),
        image_url: None,
        unit_price_amount_cents: 1000,
        amounts: amounts(1000, 100, 80),
        original_order_identifier: None,
    };
    let units = requested.iter().map(|it| RmaUnit::new(it, purchased.clone())).collect();
    let request = ReturnRequest {
        return_method: method,
        units: requested,
        gift_refund_only: false,
        giftee_email: None,
        withdrawal: None,
        staff_override: None,
    };
    let merchant = "acme".parse().unwrap();
    let terms = ReturnTerms {
        return_shipping_cost_cents: 0,
        cost_rule: None,
        gift_card_bonus_amount_cents: 0,
        currency: "USD",
        managed_receiving: settings.managed_receiving,
        review,
        return_to: None,
    };
    Rma::create(merchant, identifier, &request, units, terms, minute(0))
}

/// A mail-back return of units for a refund.
fn rma(identifier: &str, paths: &[&str]) -> Rma {
    let units: Vec<_> = paths.iter().map(|path| (*path, Resolution::Refund)).collect();
    rma_with(identifier, ReturnMethod::MailBack, &units, &settings(true))
}

fn report(event: TrackingEvent, number: Option<&str>) -> CarrierReport {
    let tracking_number = number.map(str::to_owned);
    CarrierReport { event, tracking_number, units: None, occurred_at: None, label: None }
}

fn printable(url: &str) -> Label {
    Label { url: url.to_owned(), kind: LabelKind::Printable }
}

/// Units whose exchange order was placed as an even exchange.
fn placed_units(units: &[UnitId]) -> BTreeMap<UnitId, RefundType> {
    units.iter().map(|unit| (unit.clone(), RefundType::EvenExchange)).collect()
}

fn refunded_units(refund: &str, rma: &str, paths: &[&str]) -> Vec<RefundedUnit> {
    let refunded = |path: &&str| RefundedUnit {
        refund_identifier: refund.into(),
        rma_identifier: Some(rma.to_owned()),
        unit: unit(path),
    };
    paths.iter().map(refunded).collect()
}

/// The JSON text of an error.
fn code(error: TransitionError) -> String {
    serde_json::json!(error).as_str().unwrap().to_owned()
}

/// The effect of an event in one line.
fn summary(result: &Result<Change, TransitionError>) -> String {
    let change = match result {
        Ok(change) => change,
        Err(error) => return format!("refused as {}: {error}", code(*error)),
    };
    let mut parts = vec![change.event.map_or("no message", ServiceEvent::as_str).to_owned()];
    if !change.units.is_empty() {
        parts.push(format!("changed {}", paths(&change.units)));
    }
    if !change.late.is_empty() {
        parts.push(format!("late {}", paths(&change.late)));
    }
    if change.closed_receiving {
        parts.push("closed".to_owned());
    }
    parts.extend(change.discrepancies.iter().map(|it| format!("{}: {it}", it.kind())));
    parts.join("; ")
}
