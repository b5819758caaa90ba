//! A merchant as text.

use serde_json::{Value, json};

use crate::endpoints::endpoints_table;
use crate::output::{Column, computed, details, items, join, money, text_at, time, value};

pub(super) const COLUMNS: &[Column] = &[
    value("merchant", "/identifier"),
    value("name", "/name"),
    value("time zone", "/time_zone"),
    value("currency", "/currency"),
    computed("window", return_window).wide(),
    computed("endpoints", |merchant| {
        let endpoints = merchant.get("endpoints").and_then(Value::as_object);
        endpoints.map_or(0, serde_json::Map::len).to_string()
    }),
    time("changed", "/updated_at").leave_out(1),
];

const FIELDS: &[Column] = &[
    value("merchant", "/identifier"),
    value("name", "/name"),
    value("time zone", "/time_zone"),
    value("currency", "/currency"),
    computed("return window", return_window),
    value("final-sale tags", "/final_sale_tags"),
    value("express max weight", "/express_max_weight"),
    value("parcel max weight", "/parcel_max_weight"),
    value("concept", "/concept"),
    computed("return reasons", return_reasons),
    computed("return methods", return_methods),
    computed("send within", |merchant| {
        format!("{} days", text_at(merchant, "/returns/send_within_days"))
    }),
    computed("exchange deadline", |merchant| {
        format!("{} days", text_at(merchant, "/returns/exchange_deadline_days"))
    }),
    computed("gift card", gift_card),
    value("managed receiving", "/managed_receiving"),
    value("strict amounts", "/strict_amounts"),
    value("strict refund dates", "/strict_refund_dates"),
    computed("support contact", |merchant| {
        let parts = ["email", "name", "phone"].map(|part| format!("/support_contact/{part}"));
        let known = parts.iter().filter_map(|part| merchant.pointer(part)?.as_str());
        join(known.map(str::to_owned))
    }),
    value("base URL", "/base_url"),
    value("version", "/version"),
    time("created", "/created_at"),
    time("changed", "/updated_at"),
];

pub(super) fn describe(merchant: &Value) -> String {
    let fields = details(merchant, FIELDS);
    match merchant.get("endpoints").and_then(Value::as_object) {
        Some(endpoints) if !endpoints.is_empty() => {
            format!("{fields}\n{}", endpoints_table(merchant))
        }
        _ => fields,
    }
}

fn return_window(merchant: &Value) -> String {
    format!("{} days", text_at(merchant, "/return_window_days"))
}

fn return_reasons(merchant: &Value) -> String {
    join(items(merchant, "/returns/reasons").iter().map(|reason| {
        let code = text_at(reason, "/code");
        let exchange = reason.get("offers_exchange") == Some(&json!(true));
        if exchange { format!("{code} (exchange)") } else { code }
    }))
}

fn return_methods(merchant: &Value) -> String {
    join(items(merchant, "/returns/methods").iter().map(|offer| {
        let method = text_at(offer, "/method");
        match offer.get("shipping_cost_cents").and_then(Value::as_i64) {
            None | Some(0) => method,
            Some(cents) => format!("{method} ({})", money(cents, &text_at(merchant, "/currency"))),
        }
    }))
}

fn gift_card(merchant: &Value) -> String {
    let bonus = merchant.pointer("/returns/gift_card/bonus_credit_amount_cents");
    match bonus.and_then(Value::as_i64) {
        None => "-".to_owned(),
        Some(bonus) => format!(
            "{} with a bonus of {}",
            text_at(merchant, "/returns/gift_card/sku"),
            money(bonus, &text_at(merchant, "/currency"))
        ),
    }
}

#[cfg(test)]
mod tests;
