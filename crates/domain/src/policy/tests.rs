mod agreement;
mod cost;
mod destinations;
mod guide;
mod rules;
mod settings;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::*;
use crate::json::{Document, object};
use crate::merchant::guard::Guard;
use crate::merchant::{SettingsChange, WITHDRAWAL};
use crate::order::sample::Orders;
use crate::returns::{Ineligible, IneligibleCode, StaffOverride};
use crate::warehouse::Warehouses;

const NOW: &str = "2026-02-20T10:00:00Z";

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// An order of one line that was shipped on 1 February 2026.
fn order() -> Order {
    let mut order = Orders::new(1, time(NOW)).at(0);
    order.status = crate::order::OrderStatus::Shipped;
    order.created_at = time("2026-01-30T10:00:00Z");
    order.tags.clear();
    order.items.truncate(1);
    let line = &mut order.items[0];
    line.shipped_date = Some(time("2026-02-01T10:00:00Z"));
    line.tags.clear();
    line.weight = None;
    line.sku = Some("SHIRT-M".to_owned());
    order
}

fn facts(order: &Order) -> UnitFacts<'_> {
    UnitFacts {
        order,
        line: &order.items[0],
        is_shipped: true,
        rma_identifier: None,
        is_refunded: false,
        is_order_exchanged: false,
        paid_amount_cents: 1_000,
        order_kept_cents: 0,
        shopper: ShopperFacts::NONE,
    }
}

fn choice(method: ReturnMethod, outcome: Outcome) -> Choice<'static> {
    Choice { reason: Some("OTHER"), method, outcome, return_paid_cents: 1_000 }
}

const BY_MAIL: Choice<'static> = Choice {
    reason: Some("OTHER"),
    method: ReturnMethod::MailBack,
    outcome: Outcome::Refund,
    return_paid_cents: 1_000,
};

/// Warehouses, each in a city of its name.
fn warehouses() -> Warehouses {
    let at = |city: &str| {
        let address = json!({ "name": "Dock 7", "street": "7 Dock Street", "city": city, "state": "NV", "zip": "89501" });
        (city.to_owned(), json!({ "address": address }))
    };
    let all = ["reno", "west", "main", "repair", "toronto", "outlet"].map(at);
    serde_json::from_value(Value::from_iter(all)).unwrap()
}

/// Changes settings as the API does.
fn changed(change: &Value) -> Settings {
    let guard = Guard::new(false, &[]);
    let document = Document::from(change);
    let change = document.read(object(|body| SettingsChange::read(body, &guard)));
    let mut settings = Settings::new("Acme");
    change.unwrap().apply(&mut settings, &warehouses()).unwrap();
    settings
}

/// A merchant with every method, a gift card and these rules.
fn with_rules(rules: &Value) -> Settings {
    changed(&json!({
        "returns": {
            "methods": [
                { "method": "mail-back", "shipping_cost_cents": 700 },
                { "method": "express-returns", "shipping_cost_cents": 300 },
                { "method": "customer-keep" },
            ],
            "gift_card": { "sku": "GIFT" },
        },
        "policy": { "rules": rules },
    }))
}

/// The refusal in one line: code, rule and detail.
fn refusal(decision: &UnitDecision<'_>) -> String {
    match &decision.refusal {
        None => "possible".to_owned(),
        Some(Ineligible { code, detail, rule }) => match rule {
            Some(rule) => format!("{code} by {rule}: {detail}"),
            None => format!("{code}: {detail}"),
        },
    }
}
