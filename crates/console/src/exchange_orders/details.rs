//! One exchange order with its units and its message.

use actix_web::{get, web};
use askama::Template;
use pages::{
    api::{ApiError, Service},
    path,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ExchangeOrder, state_sentence, state_tone};
use crate::{
    Page, PageResult, Section, SignedIn, html,
    listing::{amount, indented, load, words},
    markup::{badge, text},
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
    #[serde(default)]
    items: Vec<Item>,
    #[serde(default)]
    failed: Vec<FailedItem>,
    #[serde(default)]
    earlier_orders: Vec<String>,
    #[serde(default)]
    other_returns: Vec<OtherReturn>,
    #[serde(default)]
    amounts: Amounts,
    stock_check: Option<String>,
    price_check: Option<String>,
    check_detail: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Item {
    order_line_item_identifier: String,
    unit: i32,
    #[serde(default)]
    refund_type: String,
    unit_price_amount_cents: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct FailedItem {
    order_line_item_identifier: String,
    unit: i32,
    #[serde(default)]
    detail: String,
}

#[derive(Debug, Deserialize)]
struct OtherReturn {
    rma_identifier: String,
    state: String,
}

/// Amounts from the merchant's response.
#[derive(Debug, Default, Deserialize)]
struct Amounts {
    total_amount_cents: Option<i64>,
    tax_amount_cents: Option<i64>,
    shipping_amount_cents: Option<i64>,
}

#[derive(Deserialize)]
struct MessageCurrency {
    currency: String,
}

#[derive(Template)]
#[template(path = "exchange_order.html")]
struct ExchangeOrderPage {
    page: Page,
    order: ExchangeOrder,
    state: String,
    tone: &'static str,
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
    let (order, extra) =
        load_order(&signed_in, signed_in.merchant(&merchant)?, &original_order).await?;
    let page = signed_in.page(Section::ExchangeOrders);
    let currency = extra.currency();
    html(&ExchangeOrderPage {
        state: words(&order.state),
        tone: state_tone(&order.state),
        sentence: state_sentence(&order.state),
        units: extra.units(currency.as_deref()),
        amounts: extra.amounts.rows(currency.as_deref()),
        checks: extra.checks(),
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
) -> Result<(ExchangeOrder, Extra), ApiError> {
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

impl Extra {
    /// The currency is in the message only.
    fn currency(&self) -> Option<String> {
        let message: MessageCurrency = serde_json::from_str(self.message.as_ref()?.get()).ok()?;
        Some(message.currency)
    }

    fn units(&self, currency: Option<&str>) -> Table {
        let price = |item: &Item| match item.unit_price_amount_cents {
            Some(cents) => amount(cents, currency),
            None => "gift card".to_owned(),
        };
        let placed = self.items.iter().map(|it| {
            let unit = (&it.order_line_item_identifier, it.unit);
            (unit, badge("info", words(&it.refund_type)), price(it))
        });
        let failed = self.failed.iter().map(|it| {
            let unit = (&it.order_line_item_identifier, it.unit);
            let detail = Some(text(&it.detail)).filter(|_| !it.detail.is_empty());
            (unit, badge("warn", "refunded").and_some(detail), String::new())
        });
        let units: Vec<_> = placed.chain(failed).collect();
        Table::of("Units of the exchange", &units)
            .head("Unit", |((line, unit), ..)| text(format!("Line {line}, unit {unit}")))
            .cell("Result", |(_, result, _)| result.clone())
            .classed("number nowrap", "Price of the variant", |(.., price)| text(price))
            .table()
    }

    fn checks(&self) -> Vec<(&'static str, String)> {
        let result = |check: &Option<String>| check.as_deref().map(words);
        let checks = [
            ("Stock check", result(&self.stock_check)),
            ("Price check", result(&self.price_check)),
            ("Check detail", self.check_detail.clone()),
        ];
        checks.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

impl Amounts {
    fn rows(&self, currency: Option<&str>) -> Vec<(&'static str, String)> {
        let amounts = [
            ("Total", self.total_amount_cents),
            ("Tax", self.tax_amount_cents),
            ("Shipping", self.shipping_amount_cents),
        ];
        let shown =
            |(name, cents): (&'static str, Option<i64>)| Some((name, amount(cents?, currency)));
        amounts.into_iter().filter_map(shown).collect()
    }
}
