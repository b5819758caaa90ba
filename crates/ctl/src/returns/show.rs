//! Tables of returns.

use domain::printable::printable;
use domain::returns::RmaUnit;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::output::{
    Column, computed, details, id, items, join, money, named_texts, table, text_at, time, time_at,
    value, without,
};

pub(super) const COLUMNS: &[Column] = &[
    value("rma", "/rma_identifier"),
    value("merchant", "/merchant").whole(),
    time("created", "/created_at").leave_out(2),
    value("status", "/status"),
    value("next step", "/work_list").leave_out(3),
    value("message", "/last_message/state").leave_out(4),
    value("method", "/return_method").wide(),
    computed("units", |rma| active_units(rma).count().to_string()).leave_out(1),
    computed("orders", |rma| {
        let units = items(rma, "/units").iter();
        let mut orders: Vec<_> = units.map(|unit| text_at(unit, "/order_identifier")).collect();
        orders.dedup();
        join(orders.into_iter())
    })
    .whole(),
    computed("tracking", |rma| {
        let number = active_units(rma).find_map(|unit| unit.get("tracking_number")?.as_str());
        number.unwrap_or("-").to_owned()
    })
    .wide(),
];

const FIELDS: &[Column] = &[
    value("merchant", "/merchant"),
    value("rma", "/rma_identifier"),
    value("status", "/status"),
    value("method", "/return_method"),
    value("shipping cost", "/return_shipping_cost_cents"),
    value("cost by rule", "/cost_rule"),
    value("giftee", "/giftee_email"),
    value("managed receiving", "/managed_receiving"),
    time("created", "/created_at"),
    time("changed", "/updated_at"),
    time("send by", "/send_by"),
];

/// The fields of a return that goes to a warehouse that a rule names.
const WAREHOUSE_FIELDS: &[Column] = &[
    value("to warehouse", "/return_to/warehouse"),
    value("warehouse by rule", "/return_to/rule"),
    value("address", "/return_to/address_lines"),
];

/// The fields of a return that waits or waited for review.
const REVIEW_FIELDS: &[Column] = &[
    value("review by rule", "/review/rule"),
    computed("review until", |rma| {
        let until = time_at(rma, "/review/due_at");
        format!("{until}, then {}", text_at(rma, "/review/then"))
    }),
    value("decision", "/review/decided/decision"),
    time("decided", "/review/decided/at"),
    value("decided by", "/review/decided/by"),
    value("note", "/review/decided/note"),
];

const UNIT_COLUMNS: &[Column] = &[
    computed("unit", unit_name),
    value("sku", "/sku").leave_out(1),
    value("title", "/title").wide(),
    value("reason", "/return_reason"),
    value("for", "/refund_type").leave_out(4),
    computed("cents", |unit| match RmaUnit::deserialize(unit) {
        Ok(unit) => unit.refund_financials().estimated_refund_amount_cents.to_string(),
        Err(_) => "-".to_owned(),
    }),
    value("parcel", "/package_tracking_status").leave_out(3),
    value("received", "/receiving_status").leave_out(2),
    value("exchange", "/exchange_status").wide(),
    value("exchange order", "/exchange_order_identifier").wide(),
    value("refund", "/refunded_by").wide(),
    value("guarantee", "/guarantee/state").wide(),
];

/// The sums of one month and currency.
pub(super) const MONTH_COLUMNS: &[Column] = &[
    value("month", "/month"),
    computed("open", |month| sum(month, "open")),
    computed("met", |month| sum(month, "met")),
    computed("due", |month| sum(month, "due")),
    computed("waived", |month| sum(month, "waived")),
];

/// The units of a state and their amount.
fn sum(month: &Value, state: &str) -> String {
    let number = |name: &str| month.pointer(&format!("/{state}/{name}")).and_then(Value::as_i64);
    let (Some(units), Some(cents)) = (number("units"), number("amount_cents")) else {
        return "-".to_owned();
    };
    format!("{units} ({})", money(cents, &text_at(month, "/currency")))
}

const TIMELINE_COLUMNS: &[Column] = &[
    time("time", "/at"),
    value("event", "/event").whole(),
    value("actor", "/actor").leave_out(1),
    id("message", "/delivery"),
    value("arrived", "/arrived"),
];

fn unit_name(unit: &Value) -> String {
    let part = |name| text_at(unit, name);
    let order = part("/order_identifier");
    let line = part("/order_line_item_identifier");
    format!("{order}/{line}:{}", part("/unit"))
}

pub(super) fn describe(rma: &Value) -> String {
    let is_received = rma.get("managed_receiving") == Some(&json!(true));
    let columns =
        if is_received { UNIT_COLUMNS.to_vec() } else { without(UNIT_COLUMNS, "received") };
    let review = if rma.get("review").is_some() { REVIEW_FIELDS } else { &[] };
    let warehouse = if rma.get("return_to").is_some() { WAREHOUSE_FIELDS } else { &[] };
    let fields = [FIELDS, warehouse, review].concat();
    let units = table(active_units(rma), &columns);
    format!("{}\n{units}{}", details(rma, &fields), describe_comments(rma))
}

/// The words of the shopper about units.
fn describe_comments(rma: &Value) -> String {
    let comment = |unit: &Value| {
        let comment = unit.get("comment")?.as_str()?.replace('\n', " ");
        Some((unit_name(unit), printable(&comment)))
    };
    let comments: Vec<_> = active_units(rma).filter_map(comment).collect();
    if comments.is_empty() {
        return String::new();
    }
    let texts: Vec<_> =
        comments.iter().map(|(unit, comment)| (unit.as_str(), comment.clone())).collect();
    format!("\nComments of the shopper:\n{}", named_texts(&texts))
}

pub(super) fn describe_with_timeline(response: &Value) -> String {
    let rma = describe(response.get("return").unwrap_or(&Value::Null));
    format!("{rma}\n{}", table(items(response, "/timeline"), TIMELINE_COLUMNS))
}

/// The units that are still returned; for a canceled return, those canceled with it.
fn active_units(rma: &Value) -> impl Iterator<Item = &Value> {
    let canceled_at = rma.get("canceled_at");
    items(rma, "/units").iter().filter(move |unit| unit.get("canceled_at") == canceled_at)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn identifiers_of_returns_and_units_stay_whole() {
        let unit = json!({
            "order_identifier": "HO8ROZOLB3-00000017", "order_line_item_identifier": "HO8ROZOLB3-L-1",
            "unit": 1, "sku": "SHIRT-M", "return_reason": "CHANGED_MIND", "refund_type": "REFUND",
            "package_tracking_status": "PRE_TRANSIT", "canceled_at": null,
        });
        let rma = json!({
            "merchant": "acme-outdoor", "rma_identifier": "RMA-GTRRK0RFE0NSM5RQ", "status": "CREATED",
            "created_at": "2026-11-15T03:48:13Z", "canceled_at": null, "units": [unit],
        });
        expect![[r#"
            RMA                   MERCHANT      STATUS   ORDERS
            RMA-GTRRK0RFE0NSM5RQ  acme-outdoor  CREATED  HO8ROZOLB3-00000017
        "#]]
        .assert_eq(&table([&rma], COLUMNS));
        expect![[r#"
            UNIT                                  REASON        FOR     CENTS  PARCEL
            HO8ROZOLB3-00000017/HO8ROZOLB3-L-1:1  CHANGED_MIND  REFUND  -      PRE_TRANSIT
        "#]]
        .assert_eq(&table(active_units(&rma), UNIT_COLUMNS));
    }

    #[test]
    fn a_month_shows_units_with_their_amounts() {
        let sum = |units: i64| json!({ "units": units, "amount_cents": units * 2165 });
        let month = json!({
            "month": "2026-11", "currency": "USD",
            "open": sum(3), "met": sum(10), "due": sum(1), "waived": sum(0),
        });
        expect![[r#"
            MONTH    OPEN           MET              DUE            WAIVED
            2026-11  3 (64.95 USD)  10 (216.50 USD)  1 (21.65 USD)  0 (0.00 USD)
        "#]]
        .assert_eq(&table([&month], MONTH_COLUMNS));
    }

    #[test]
    fn a_return_without_managed_receiving_shows_amounts_and_no_receipts() {
        let unit = json!({
            "amounts": { "discount_amount_cents": 0, "product_amount_cents": 3995, "tax_amount_cents": 330 },
            "canceled_at": null, "exchange_order_identifier": null, "exchange_status": null,
            "failed_before_scan": false, "image_url": null, "is_damaged": false,
            "order_identifier": "1001", "order_line_item_identifier": "L-1",
            "original_order_identifier": null, "package_tracking_status": null,
            "receiving_status": "PENDING", "refund_type": "REFUND", "refunded_by": null,
            "resolution": "refund", "return_reason": "CHANGED_MIND", "sku": "BELT",
            "title": "Belt", "tracking_number": null, "unit": 1, "upc": null,
        });
        let text =
            describe(&json!({ "managed_receiving": false, "canceled_at": null, "units": [unit] }));
        let (_, units) = text.split_once("\n\n").unwrap();
        expect![[r#"
            UNIT        SKU   REASON        FOR     CENTS  PARCEL
            1001/L-1:1  BELT  CHANGED_MIND  REFUND  4325   -
        "#]]
        .assert_eq(units);
    }

    #[test]
    fn the_warehouse_that_a_rule_names_is_shown() {
        let return_to = json!({ "warehouse": "reno", "rule": "outlet",
                                "address_lines": ["Dock 7", "7 Dock Street", "Reno, NV 89501"] });
        let shown = |rma: Value| {
            let text = describe(&rma);
            let lines =
                text.lines().filter(|line| line.contains("warehouse") || line.contains("address"));
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        expect![[r#"
            to warehouse       reno
            warehouse by rule  outlet
            address            Dock 7, 7 Dock Street, Reno, NV 89501
        "#]]
        .assert_eq(&shown(json!({ "units": [], "return_to": return_to })));
        assert_eq!(shown(json!({ "units": [] })), "");
    }

    #[test]
    fn a_review_and_the_comments_of_the_shopper_are_shown() {
        let unit = json!({
            "canceled_at": null, "order_identifier": "1001", "order_line_item_identifier": "L-1",
            "unit": 1, "sku": "BELT", "comment": "Too tight\nat the waist",
        });
        let review = json!({
            "rule": "often", "within_days": 3, "due_at": "2026-11-19T00:00:00Z", "then": "approve",
            "decided": { "decision": "decline", "at": "2026-11-18T10:00:00Z", "by": "jo", "note": "Worn" },
        });
        let text = describe(&json!({ "canceled_at": null, "units": [unit], "review": review }));
        let (fields, units) = text.split_once("\n\n").unwrap();
        let review: Vec<_> =
            fields.lines().skip_while(|line| !line.starts_with("review")).collect();
        expect![[r#"
            review by rule     often
            review until       2026-11-19 00:00:00Z, then approve
            decision           decline
            decided            2026-11-18 10:00:00Z
            decided by         jo
            note               Worn"#]]
        .assert_eq(&review.join("\n"));
        let (_, comments) = units.split_once("\n\n").unwrap();
        expect![[r#"
            Comments of the shopper:
            1001/L-1:1  Too tight at the waist
        "#]]
        .assert_eq(comments);
    }
}
