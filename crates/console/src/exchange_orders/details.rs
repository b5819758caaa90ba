//! One exchange order with its units and its message.

use actix_web::{get, web};
use api::exchange::{ExchangeOrderView, OtherReturn};
use askama::Template;
use domain::exchange::{OrderAmounts, PlacedItem};
use pages::{
    api::{ApiError, Service},
    path,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{state_sentence, url};
use crate::{
    Page, PageResult, Section, SignedIn,
    actors::ClientNames,
    html,
    markup::{badge, text},
    record_list::{amount, indented, load, words},
    states::Shown as _,
    table::Table,
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_exchange_order);
}

/// The parts of an exchange order that only its page shows. The summary is read on its own, because raw
/// JSON cannot be part of a flattened struct.
#[derive(Debug, Deserialize)]
pub(super) struct Extra {
    message: Option<Box<RawValue>>,
    earlier_orders: Vec<String>,
    other_returns: Vec<OtherReturn>,
}

#[derive(Template)]
#[template(path = "exchange_order.html")]
struct ExchangeOrderPage {
    page: Page,
    order: ExchangeOrderView,
    url: String,
    sentence: &'static str,
    units: Table,
    /// Names and values of the amounts in the merchant's response.
    amounts: Vec<(&'static str, String)>,
    /// Results of the checks before the exchange order was placed.
    checks: Vec<(&'static str, String)>,
    message: Option<String>,
    extra: Extra,
}

#[get("/merchants/{merchant}/exchange-orders/{order}")]
async fn show_exchange_order(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, original_order) = path.into_inner();
    let (mut order, extra) =
        load_order(&signed_in, signed_in.merchant(&merchant)?, &original_order).await?;
    if let Some(abandonment) = &mut order.abandonment {
        let names = ClientNames::load(&signed_in, [abandonment.by.as_str()]).await;
        abandonment.by = names.name(&abandonment.by).to_owned();
    }
    let page = signed_in.page(Section::ExchangeOrders);
    let currency = currency(extra.message.as_deref());
    html(&ExchangeOrderPage {
        url: url(&order.merchant, &order.original_order_id),
        sentence: state_sentence(order.state),
        units: unit_table(&order, currency.as_deref()),
        amounts: amounts(&order.amounts, currency.as_deref()),
        checks: checks(&order),
        message: extra.message.as_ref().map(|message| indented(message.get())),
        page,
        order,
        extra,
    })
}

/// Loads an exchange order of a merchant by its original order.
pub(super) async fn load_order(
    signed_in: &SignedIn,
    merchant: &str,
    original_order: &str,
) -> Result<(ExchangeOrderView, Extra), ApiError> {
    let path = path!("v1", "exchange_orders", original_order);
    let raw: Box<RawValue> = load(signed_in, Service::Exchange, Some(merchant), &path, &[]).await?;
    let read = || {
        Ok::<_, serde_json::Error>((
            serde_json::from_str(raw.get())?,
            serde_json::from_str(raw.get())?,
        ))
    };
    read().map_err(|error| {
        tracing::error!(%error, "exchange sent an exchange order that cannot be read");
        ApiError::Unavailable { service: Service::Exchange }
    })
}

/// The currency is in the message only.
fn currency(message: Option<&RawValue>) -> Option<String> {
    let message: Value = serde_json::from_str(message?.get()).ok()?;
    Some(message.get("currency")?.as_str()?.to_owned())
}

fn unit_table(order: &ExchangeOrderView, currency: Option<&str>) -> Table {
    let price = |item: &PlacedItem| match item.unit_price_amount_cents {
        Some(cents) => amount(cents, currency),
        None => "gift card".to_owned(),
    };
    let placed =
        order.items.iter().map(|it| (&it.unit, badge("info", words(it.refund_type)), price(it)));
    let failed = order.failed.iter().map(|it| {
        let detail = Some(text(&it.detail)).filter(|_| !it.detail.is_empty());
        (&it.unit, badge("warn", "refunded").and_some(detail), String::new())
    });
    let units: Vec<_> = placed.chain(failed).collect();
    Table::of("Units of the exchange", &units)
        .head("Unit", |(it, ..)| {
            text(format!("Line {}, unit {}", it.order_line_item_identifier, it.unit))
        })
        .cell("Result", |(_, result, _)| result.clone())
        .classed("number nowrap", "Price of the variant", |(.., price)| text(price))
        .table()
}

fn checks(order: &ExchangeOrderView) -> Vec<(&'static str, String)> {
    let checks = [
        ("Stock check", order.stock_check.map(words)),
        ("Price check", order.price_check.map(words)),
        ("Check detail", order.check_detail.clone()),
    ];
    checks.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn amounts(amounts: &OrderAmounts, currency: Option<&str>) -> Vec<(&'static str, String)> {
    let amounts = [
        ("Total", amounts.total_amount_cents),
        ("Tax", amounts.tax_amount_cents),
        ("Shipping", amounts.shipping_amount_cents),
    ];
    let shown = |(name, cents): (&'static str, Option<i64>)| Some((name, amount(cents?, currency)));
    amounts.into_iter().filter_map(shown).collect()
}
